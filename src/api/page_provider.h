// The host's memory as the library's PageProvider.
#pragma once

#include <cstddef>

#include "api/release_callback.h"
#include "base/pages.h"
#include "inlay/inlay.h"

namespace inlay::api {

class HostPages final : public PageProvider {
public:
    // INLAY_E_INVALID_ARGUMENT naming what is missing.
    explicit HostPages(const inlay_page_provider& provider);

    std::byte* reserve(size_t bytes, bool huge) override;
    bool commit(std::byte* address, size_t bytes, bool now) override;
    void decommit(std::byte* address, size_t bytes) override;
    void release(std::byte* address, size_t bytes) override;

    ReleaseCallback& on_release() { return on_release_; }

private:
    inlay_page_provider provider_;
    ReleaseCallback on_release_;
};

}  // namespace inlay::api
