// The bytes of saved sessions and pins: where things stand in them, and how they are changed so that every checksum is
// right.
#pragma once

#include "src/base/xxhash.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace inlay::test {

constexpr size_t kSavedHeadBytes = 128;
constexpr size_t kSectionHeadBytes = 16;
enum SavedSection : uint32_t { kSavedLayout = 1, kSavedState, kSavedTokens, kSavedBlocks, kSavedNodes, kSavedPins };

template <typename T>
T value_at(const std::string& bytes, size_t at) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}
template <typename T>
void set_value(std::string& bytes, size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
}

// Where the content of a section begins.
inline size_t section_begin(const std::string& bytes, uint32_t kind) {
    size_t at = kSavedHeadBytes;
    while (value_at<uint32_t>(bytes, at) != kind) at += kSectionHeadBytes + value_at<uint64_t>(bytes, at + 8) + 8;
    return at + kSectionHeadBytes;
}

// Writes the checksums anew, as far as there is something to check.
inline void reseal(std::string& bytes) {
    if (bytes.size() < kSavedHeadBytes) return;
    set_value(bytes, kSavedHeadBytes - 8, XXH3_64bits(bytes.data(), kSavedHeadBytes - 8));
    for (size_t at = kSavedHeadBytes; bytes.size() - at >= kSectionHeadBytes + 8;) {
        const uint64_t n = value_at<uint64_t>(bytes, at + 8);
        if (n > bytes.size() - at - kSectionHeadBytes - 8) return;
        const size_t end = at + kSectionHeadBytes + static_cast<size_t>(n);
        set_value(bytes, end, XXH3_64bits(bytes.data() + at, end - at));
        at = end + 8;
    }
}

}  // namespace inlay::test
