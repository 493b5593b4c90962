#include "base/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>

#include "base/allocation.h"

namespace inlay {
namespace {

constexpr size_t kReservationAlignment = size_t{2} << 20;  // of a huge page

size_t page_size() {
    return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

size_t round_up(size_t value, size_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

class SystemPages final : public PageProvider {
public:
    std::byte* reserve(size_t bytes, bool huge) override {
        // More than asked for, cut to the alignment: the kernel gives large pages only to aligned parts.
        if (bytes > SIZE_MAX - kReservationAlignment) return nullptr;
        const size_t total = bytes + kReservationAlignment;
        void* mapped = mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapped == MAP_FAILED) return nullptr;
        const auto begin = reinterpret_cast<uintptr_t>(mapped);
        const uintptr_t aligned = round_up(begin, kReservationAlignment);
        if (aligned > begin) munmap(mapped, aligned - begin);
        const uintptr_t end = begin + total;
        if (end > aligned + bytes) munmap(reinterpret_cast<void*>(aligned + bytes), end - aligned - bytes);
        auto* address = reinterpret_cast<std::byte*>(aligned);
#ifdef MADV_HUGEPAGE
        if (huge) madvise(address, bytes, MADV_HUGEPAGE);
#endif
        return address;
    }

    bool commit(std::byte* address, size_t bytes, bool now) override {
        if (mprotect(address, bytes, PROT_READ | PROT_WRITE) != 0) return false;
        return !now || populate(address, bytes);
    }

    void decommit(std::byte* address, size_t bytes) override {
        madvise(address, bytes, MADV_DONTNEED);
        mprotect(address, bytes, PROT_NONE);
    }

    void release(std::byte* address, size_t bytes) override {
        munmap(address, bytes);
    }

private:
    static bool populate(std::byte* address, size_t bytes) {
#ifdef MADV_POPULATE_WRITE
        if (madvise(address, bytes, MADV_POPULATE_WRITE) == 0) return true;
        if (errno != EINVAL) return false;
#endif
        for (size_t offset = 0; offset < bytes; offset += page_size())  // kernels before 5.14
            *reinterpret_cast<volatile std::byte*>(address + offset) = std::byte{0};
        return true;
    }
};

}  // namespace

std::shared_ptr<PageProvider> system_pages() {
    return std::make_shared<SystemPages>();
}

bool system_has_huge_pages() {
    // "always madvise [never]": the one that holds is in brackets.
    FILE* file = std::fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
    if (!file) return false;
    char modes[64] = {};
    const size_t n = std::fread(modes, 1, sizeof modes - 1, file);
    std::fclose(file);
    return n > 0 && std::strstr(modes, "[never]") == nullptr;
}

PageRange::PageRange(std::shared_ptr<PageProvider> provider, size_t bytes, bool huge)
    : provider_(std::move(provider)), bytes_(bytes) {
    if (bytes_ == 0) return;
    if (bytes_ > SIZE_MAX - page_size()) throw std::bad_alloc();
    if (!allocation_should_fail()) address_ = provider_->reserve(reserved_bytes(), huge);
    if (!address_) throw std::bad_alloc();
}

PageRange::~PageRange() {
    if (address_) provider_->release(address_, reserved_bytes());
}

size_t PageRange::reserved_bytes() const {
    return round_up(bytes_, page_size());
}

void PageRange::commit(size_t offset, size_t bytes, bool now) {
    const size_t page = page_size();
    const size_t begin = offset / page * page;
    const size_t end = round_up(offset + bytes, page);
    if (allocation_should_fail() || !provider_->commit(address_ + begin, end - begin, now)) throw std::bad_alloc();
}

void PageRange::decommit(size_t offset, size_t bytes) {
    const size_t page = page_size();
    const size_t begin = round_up(offset, page);
    const size_t end = (offset + bytes) / page * page;
    if (end > begin) provider_->decommit(address_ + begin, end - begin);
}

}  // namespace inlay
