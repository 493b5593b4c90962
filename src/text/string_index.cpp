#include "text/string_index.h"

#include <bit>

#include "base/xxhash.h"

namespace inlay {

namespace {

uint32_t hash_of(std::string_view text) {
    const uint64_t hash = XXH3_64bits(text.data(), text.size());
    return static_cast<uint32_t>(hash ^ (hash >> 32));
}

}  // namespace

int32_t StringIndex::find(const StringTable& strings, std::string_view text) const {
    if (slots_.empty()) return kNone;
    const uint32_t hash = hash_of(text);
    const size_t mask = slots_.size() - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
        const Slot& slot = slots_[at];
        if (slot.number == kNone) return kNone;
        if (slot.hash == hash && strings[static_cast<size_t>(slot.number)] == text) return slot.number;
    }
}

int32_t StringIndex::insert(const StringTable& strings, int32_t number) {
    if ((n_used_ + 1) * 3 > slots_.size() * 2) grow(slots_.empty() ? 64 : slots_.size() * 2);
    const std::string_view text = strings[static_cast<size_t>(number)];
    const uint32_t hash = hash_of(text);
    const size_t mask = slots_.size() - 1;
    size_t at = hash & mask;
    for (; slots_[at].number != kNone; at = (at + 1) & mask) {
        const Slot& slot = slots_[at];
        if (slot.hash == hash && strings[static_cast<size_t>(slot.number)] == text) return slot.number;
    }
    slots_[at] = {hash, number};
    ++n_used_;
    return number;
}

void StringIndex::reserve(size_t n_strings) {
    const size_t n_slots = std::bit_ceil(n_strings * 3 / 2 + 64);
    if (n_slots > slots_.size()) grow(n_slots);
}

void StringIndex::grow(size_t n_slots) {
    std::vector<Slot> bigger(n_slots);
    const size_t mask = n_slots - 1;
    for (const Slot& slot : slots_) {
        if (slot.number == kNone) continue;
        size_t at = slot.hash & mask;
        while (bigger[at].number != kNone) at = (at + 1) & mask;
        bigger[at] = slot;
    }
    slots_ = std::move(bigger);
}

}  // namespace inlay
