#include "base/allocation.h"

#include <cstddef>
#include <new>

#ifdef INLAY_TEST_HOOKS
#include <atomic>
#endif

#ifdef INLAY_USE_MIMALLOC
#include <mimalloc.h>
#else
#include <cstdlib>
#endif

namespace inlay {

#ifdef INLAY_TEST_HOOKS
namespace {
constinit std::atomic<int64_t> allocations_left{-1};
}  // namespace

bool allocation_should_fail() noexcept {
    // Unarmed is the common case: one load. Otherwise the thread that takes the count from 0 to -1 fails.
    if (allocations_left.load(std::memory_order_relaxed) < 0) return false;
    return allocations_left.fetch_sub(1, std::memory_order_relaxed) == 0;
}
#else
bool allocation_should_fail() noexcept {
    return false;
}
#endif

}  // namespace inlay

#ifdef INLAY_TEST_HOOKS
int64_t inlayx_fail_allocation(int64_t n) noexcept {
    return inlay::allocations_left.exchange(n < 0 ? -1 : n, std::memory_order_relaxed);
}
#endif

#ifndef INLAY_WITHOUT_OPERATORS

namespace inlay {
namespace {

#ifdef INLAY_USE_MIMALLOC
void* take(std::size_t size) noexcept {
    return mi_malloc(size);
}
void* take_aligned(std::size_t size, std::size_t alignment) noexcept {
    return mi_malloc_aligned(size, alignment);
}
void give_back(void* memory) noexcept {
    mi_free(memory);
}
#else
void* take(std::size_t size) noexcept {
    return std::malloc(size != 0 ? size : 1);
}
void* take_aligned(std::size_t size, std::size_t alignment) noexcept {
    void* memory = nullptr;
    return posix_memalign(&memory, alignment, size != 0 ? size : 1) == 0 ? memory : nullptr;
}
void give_back(void* memory) noexcept {
    std::free(memory);
}
#endif

void* allocate(std::size_t size) noexcept {
    return allocation_should_fail() ? nullptr : take(size);
}

void* allocate(std::size_t size, std::align_val_t alignment) noexcept {
    return allocation_should_fail() ? nullptr : take_aligned(size, static_cast<std::size_t>(alignment));
}

// The library installs no new-handler, so there is none to call before giving up.
void* or_throw(void* memory) {
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}

}  // namespace
}  // namespace inlay

void* operator new(std::size_t size) {
    return inlay::or_throw(inlay::allocate(size));
}
void* operator new[](std::size_t size) {
    return inlay::or_throw(inlay::allocate(size));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
    return inlay::or_throw(inlay::allocate(size, alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
    return inlay::or_throw(inlay::allocate(size, alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    return inlay::allocate(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
    return inlay::allocate(size);
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
    return inlay::allocate(size, alignment);
}
void* operator new[](std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
    return inlay::allocate(size, alignment);
}

void operator delete(void* memory) noexcept {
    inlay::give_back(memory);
}
void operator delete[](void* memory) noexcept {
    inlay::give_back(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    inlay::give_back(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    inlay::give_back(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
    inlay::give_back(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
    inlay::give_back(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    inlay::give_back(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
    inlay::give_back(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
    inlay::give_back(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
    inlay::give_back(memory);
}
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
    inlay::give_back(memory);
}
void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
    inlay::give_back(memory);
}

#endif
