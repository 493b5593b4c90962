#include "tests/model/allocation_count.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "base/allocation.h"

namespace {

std::atomic<size_t> current{0};
std::atomic<size_t> peak{0};

void* take(size_t size) noexcept {
    void* memory = std::malloc(size == 0 ? 1 : size);
    if (memory == nullptr) return nullptr;
    const size_t now = current += malloc_usable_size(memory);
    size_t seen = peak;
    while (now > seen && !peak.compare_exchange_weak(seen, now)) {
    }
    return memory;
}

void give_back(void* memory) noexcept {
    if (memory == nullptr) return;
    current -= malloc_usable_size(memory);
    std::free(memory);
}

}  // namespace

namespace inlay {

// The page seam asks for this; it is defined where the operators are.
bool allocation_should_fail() noexcept {
    return false;
}

}  // namespace inlay

namespace inlay::test {

size_t allocated_bytes() {
    return current;
}
size_t peak_allocated_bytes() {
    return peak;
}
void reset_peak_allocated_bytes() {
    peak = current.load();
}

}  // namespace inlay::test

void* operator new(size_t size) {
    void* memory = take(size);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}
void* operator new[](size_t size) {
    return operator new(size);
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
    return take(size);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
    return take(size);
}
void operator delete(void* memory) noexcept {
    give_back(memory);
}
void operator delete[](void* memory) noexcept {
    give_back(memory);
}
void operator delete(void* memory, size_t) noexcept {
    give_back(memory);
}
void operator delete[](void* memory, size_t) noexcept {
    give_back(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
    give_back(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
    give_back(memory);
}
