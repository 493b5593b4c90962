// Finds the number of a string in a StringTable: an open-addressing hash table that stores numbers only, so that the
// bytes of a vocabulary exist once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/string_table.h"

namespace inlay {

class StringIndex {
public:
    static constexpr int32_t kNone = -1;

    // `strings` must outlive the index's calls and may only grow.
    int32_t find(const StringTable& strings, std::string_view text) const;

    // Registers strings[number], which must have been added already. Returns the number under which these bytes are
    // known: `number` itself, or that of an equal string inserted before.
    int32_t insert(const StringTable& strings, int32_t number);

    void reserve(size_t n_strings);

    size_t memory_bytes() const { return slots_.capacity() * sizeof(Slot); }

private:
    struct Slot {
        uint32_t hash = 0;
        int32_t number = kNone;
    };

    void grow(size_t n_slots);

    std::vector<Slot> slots_;  // a power of two, at most two thirds full
    size_t n_used_ = 0;
};

}  // namespace inlay
