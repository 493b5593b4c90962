#include "api/page_provider.h"

#include <cstdint>
#include <string>

#include "api/boundary.h"
#include "api/versioned_struct.h"

namespace inlay::api {

HostPages::HostPages(const inlay_page_provider& provider)
    : provider_(read_struct(&provider, "options->pages")), on_release_(provider_.on_release, provider_.user) {
    check_reserved(provider_.reserved, "options->pages->reserved");
    require(provider_.reserve, "options->pages->reserve");
    require(provider_.release, "options->pages->release");
}

std::byte* HostPages::reserve(size_t bytes, bool huge) {
    void* const address = provider_.reserve(provider_.user, bytes, huge ? INLAY_PAGES_LARGE : 0);
    if (reinterpret_cast<uintptr_t>(address) % kAlignment == 0) return static_cast<std::byte*>(address);
    provider_.release(provider_.user, address, bytes);
    invalid("the engine's page provider: reserve gave an address that is no multiple of " + std::to_string(kAlignment));
}

bool HostPages::commit(std::byte* address, size_t bytes, bool now) {
    return !provider_.commit || provider_.commit(provider_.user, address, bytes, now ? INLAY_PAGES_NOW : 0) == 0;
}

void HostPages::decommit(std::byte* address, size_t bytes) {
    if (provider_.decommit) provider_.decommit(provider_.user, address, bytes);
}

void HostPages::release(std::byte* address, size_t bytes) {
    provider_.release(provider_.user, address, bytes);
}

}  // namespace inlay::api
