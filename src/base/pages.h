// The page seam: weights, caches and scratch, nearly all bytes of a process that uses the library, come through a
// PageProvider. Address space is reserved, memory committed; a host may bring its own provider. Any thread calls one.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace inlay {

class PageProvider {
public:
    virtual ~PageProvider() = default;
    // Every reservation begins at a multiple of this, and all sizes are multiples of the system's page size.
    static constexpr size_t kAlignment = 4096;

    // Address space without memory; null when there is none. `huge`: large pages are wanted.
    virtual std::byte* reserve(size_t bytes, bool huge) = 0;
    // Makes a part of a reservation readable and writable, zero where it was never written. `now`: memory is taken at
    // once.
    virtual bool commit(std::byte* address, size_t bytes, bool now) = 0;
    // Gives the memory of a part back; its content is lost and it must be committed again.
    virtual void decommit(std::byte* address, size_t bytes) = 0;
    virtual void release(std::byte* address, size_t bytes) = 0;
};

// The operating system's pages.
std::shared_ptr<PageProvider> system_pages();

// False when the operating system is set up to give no large pages, whatever is wanted.
bool system_has_huge_pages();

// One reservation, released at the end of its life.
class PageRange {
public:
    PageRange() = default;
    // Throws std::bad_alloc when the address space can not be had.
    PageRange(std::shared_ptr<PageProvider> provider, size_t bytes, bool huge);
    ~PageRange();
    PageRange(PageRange&& other) noexcept { swap(other); }
    PageRange& operator=(PageRange&& other) noexcept {
        swap(other);
        return *this;
    }

    std::byte* data() const { return address_; }
    size_t size() const { return bytes_; }
    // Throws std::bad_alloc when memory can not be had. Offsets and sizes are rounded outwards to pages.
    void commit(size_t offset, size_t bytes, bool now);
    // Rounded inwards to pages.
    void decommit(size_t offset, size_t bytes);

private:
    size_t reserved_bytes() const;
    void swap(PageRange& other) noexcept {
        std::swap(provider_, other.provider_);
        std::swap(address_, other.address_);
        std::swap(bytes_, other.bytes_);
    }

    std::shared_ptr<PageProvider> provider_;
    std::byte* address_ = nullptr;
    size_t bytes_ = 0;
};

}  // namespace inlay
