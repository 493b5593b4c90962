// In place of keys and values, the tests of the cache write marks into the pages: numbers that only this token after
// exactly this beginning has. Whoever sees another's block, or a stale one, sees a wrong mark.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "cache/cache.h"

namespace inlay::marks {

// Layers of one small KV head, one for each entry: its window.
inline KvLayout small_layout(const std::vector<uint32_t>& windows) {
    std::vector<KvLayer> layers;
    for (const uint32_t window : windows) layers.push_back({{1, 8, 8}, window});
    return make_kv_layout(layers, KvType::kF32, KvType::kF32);
}

inline uint64_t continued(uint64_t mark, int32_t token) {
    return (mark ^ static_cast<uint32_t>(token)) * 0x9E3779B97F4A7C15u + (mark >> 29) + 1;
}

// Bytes from the page at which a token's mark stands: in its first and last key channel and its first value.
struct MarkPlaces {
    size_t offsets[3];
};

inline MarkPlaces places_of(const KvLayout& layout, size_t layer, size_t slot) {
    const size_t keys = layout.key_offset(layer, 0);
    return {{keys + 4 * slot, keys + 4 * (7 * kBlockTokens + slot), layout.value_offset(layer, 0) + 4 * 8 * slot}};
}

// Calls visit(position, mark of the token there).
template <typename Visit>
void for_each_mark(std::span<const int32_t> tokens, uint64_t extra_key, size_t begin, size_t end, Visit visit) {
    uint64_t mark = extra_key * 77 + 13;
    for (size_t position = 0; position < end; ++position) {
        mark = continued(mark, tokens[position]);
        if (position >= begin) visit(position, mark);
    }
}

// What a step does between prepare and commit.
inline void write(const KvLayout& layout, const Sequence& sequence, uint64_t extra_key, size_t n_tokens) {
    const size_t begin = sequence.n_computed();
    for_each_mark(sequence.tokens(), extra_key, begin, begin + n_tokens, [&](size_t position, uint64_t mark) {
        for (size_t layer = 0; layer < layout.places.size(); ++layer) {
            std::byte* page = sequence.pages(layout.group_of(layer))[position / kBlockTokens];
            const auto value = static_cast<uint32_t>((mark >> 20) + layer);
            for (const size_t offset : places_of(layout, layer, position % kBlockTokens).offsets) {
                std::memcpy(page + offset, &value, sizeof value);
            }
        }
    });
}

// Computed positions that the next token would see wrongly.
inline size_t n_wrong(const KvLayout& layout, const Sequence& sequence, uint64_t extra_key) {
    size_t wrong = 0;
    const size_t end = sequence.n_computed();
    for_each_mark(sequence.tokens(), extra_key, 0, end, [&](size_t position, uint64_t mark) {
        for (size_t layer = 0; layer < layout.places.size(); ++layer) {
            const KvGroup& group = layout.groups[layout.group_of(layer)];
            if (group.window != 0 && position + group.window < end + 1) continue;
            const std::byte* page = sequence.pages(layout.group_of(layer))[position / kBlockTokens];
            const auto expected = static_cast<uint32_t>((mark >> 20) + layer);
            for (const size_t offset : places_of(layout, layer, position % kBlockTokens).offsets) {
                uint32_t value = 0;
                if (page) std::memcpy(&value, page + offset, sizeof value);
                wrong += value != expected;
            }
        }
    });
    return wrong;
}

// Computes all waiting tokens in steps of at most `max_step`. False when the cache is full; what was computed stays.
inline bool compute(Cache& cache, Sequence& sequence, uint64_t extra_key = 0, size_t max_step = 50) {
    while (sequence.n_computed() < sequence.tokens().size()) {
        const size_t n = std::min(max_step, sequence.tokens().size() - sequence.n_computed());
        if (!cache.prepare(sequence, n)) return false;
        write(cache.layout(), sequence, extra_key, n);
        cache.commit(sequence, n);
    }
    return true;
}

inline std::vector<int32_t> counting(size_t n_tokens, int32_t first = 0) {
    std::vector<int32_t> tokens(n_tokens);
    for (size_t i = 0; i < n_tokens; ++i) tokens[i] = first + static_cast<int32_t>(i);
    return tokens;
}

}  // namespace inlay::marks
