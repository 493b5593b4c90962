// Structs that cross the ABI begin with their size and grow only at their end: each side reads and writes what both
// know.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "api/boundary.h"

namespace inlay::api {

inline constexpr uint32_t kSmallestStruct = 2 * sizeof(uint32_t);

// Writes exactly struct_size bytes of defaults: the size, and zeros.
template <typename Struct>
int32_t init_struct(Struct* out, uint32_t struct_size) noexcept {
    if (!out || struct_size < kSmallestStruct) return INLAY_E_INVALID_ARGUMENT;
    std::memset(static_cast<void*>(out), 0, struct_size);
    std::memcpy(static_cast<void*>(out), &struct_size, sizeof struct_size);
    return INLAY_OK;
}

inline uint32_t checked_size(uint32_t struct_size, const char* name) {
    if (struct_size < kSmallestStruct)
        invalid(std::string(name) + "->struct_size is " + std::to_string(struct_size) +
                ", set it to the struct's size");
    return struct_size;
}

// The caller's options as this library knows them; NULL gives defaults.
template <typename Struct>
Struct read_struct(const Struct* theirs, const char* name) {
    static_assert(std::is_trivially_copyable_v<Struct>);
    Struct ours{};
    ours.struct_size = sizeof ours;
    if (!theirs) return ours;
    const uint32_t size = checked_size(theirs->struct_size, name);
    const auto* bytes = reinterpret_cast<const unsigned char*>(theirs);
    std::memcpy(&ours, bytes, std::min<size_t>(size, sizeof ours));
    for (size_t i = sizeof ours; i < size; ++i)
        if (bytes[i] != 0)
            throw Error(INLAY_E_UNSUPPORTED, std::string(name) + " sets a field at byte " + std::to_string(i) +
                                                 " that this version of the library does not know");
    ours.struct_size = sizeof ours;
    return ours;
}

// Copies a result into the caller's struct as far as both know it; struct_size stays theirs.
template <typename Struct>
void write_struct(const Struct& ours, Struct* theirs) {
    static_assert(std::is_trivially_copyable_v<Struct>);
    const size_t size = std::min<size_t>(theirs->struct_size, sizeof ours);
    std::memcpy(reinterpret_cast<unsigned char*>(theirs) + sizeof(uint32_t),
                reinterpret_cast<const unsigned char*>(&ours) + sizeof(uint32_t), size - sizeof(uint32_t));
}

// A result struct of the caller: checked, and zero until written.
template <typename Struct>
void clear_result(Struct* theirs, const char* name) {
    const uint32_t size = checked_size(require(theirs, name).struct_size, name);
    std::memset(reinterpret_cast<unsigned char*>(theirs) + sizeof(uint32_t), 0,
                std::min<size_t>(size, sizeof *theirs) - sizeof(uint32_t));
}

}  // namespace inlay::api
