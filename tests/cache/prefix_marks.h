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
inline KvLayout small_layout(const std::vector<uint32_t>& windows, KvType type = KvType::kF32) {
    std::vector<KvLayer> layers;
    for (const uint32_t window : windows) layers.push_back({{1, 8, 8}, window});
    return make_kv_layout(layers, type, type);
}

inline uint64_t continued(uint64_t mark, int32_t token) {
    return (mark ^ static_cast<uint32_t>(token)) * 0x9E3779B97F4A7C15u + (mark >> 29) + 1;
}

// Bytes from the page at which a token's mark stands: in its first and last key channel and its first value. Quantised
// codes do not lie by tokens: there it is any place that no other token has.
struct MarkPlaces {
    size_t offsets[3];
};

inline MarkPlaces places_of(const KvLayout& layout, size_t layer, size_t slot) {
    const size_t keys = layout.key_offset(layer, 0);
    const size_t values = layout.value_offset(layer, 0);
    if (layout.is_quantized()) return {{keys + 4 * slot, values + 4 * slot, values + 64 + 4 * slot}};
    return {{keys + 4 * slot, keys + 4 * (7 * kBlockTokens + slot), values + 4 * 8 * slot}};
}

// Where the mark of a slot of the exact form stands, in the pages that begin with group `first_group`.
inline std::byte* exact_place(const KvLayout& layout, const Sequence& sequence, size_t first_group, size_t block,
                              size_t layer, size_t slot) {
    const size_t offset = layout.exact_offset(layer, 0) + 4 * slot;
    std::byte* page = sequence.pages(first_group + offset / layout.page_bytes)[block];
    return page ? page + offset % layout.page_bytes : nullptr;
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

inline uint32_t value_of(uint64_t mark, size_t layer) {
    return static_cast<uint32_t>((mark >> 20) + layer);
}

inline void put(std::byte* place, uint32_t value) {
    std::memcpy(place, &value, sizeof value);
}
inline bool shows(const std::byte* place, uint32_t value) {
    return place && std::memcmp(place, &value, sizeof value) == 0;
}

// Blocks that become full are written from their exact form, of which the first part is what the steps before left.
inline void write_quantized(const KvLayout& layout, const Sequence& sequence, uint64_t extra_key, size_t n_tokens) {
    const size_t begin = sequence.n_computed();
    const size_t end = begin + n_tokens;
    const size_t first_block = begin / kBlockTokens;
    std::vector<std::vector<uint32_t>> values(layout.places.size());  // [layers][from the first block's first token]
    for (size_t layer = 0; layer < values.size(); ++layer) {
        values[layer].resize(end - first_block * kBlockTokens);
        for (size_t slot = 0; slot < begin % kBlockTokens; ++slot) {
            const std::byte* place = exact_place(layout, sequence, layout.open_page_group(), first_block, layer, slot);
            if (!place)
                place = exact_place(layout, sequence, layout.open_page_group(), end / kBlockTokens, layer, slot);
            if (place) std::memcpy(&values[layer][slot], place, sizeof(uint32_t));
        }
    }
    for_each_mark(sequence.tokens(), extra_key, begin, end, [&](size_t position, uint64_t mark) {
        for (size_t layer = 0; layer < values.size(); ++layer)
            values[layer][position - first_block * kBlockTokens] = value_of(mark, layer);
    });
    for (size_t layer = 0; layer < values.size(); ++layer) {
        for (size_t i = 0; i < values[layer].size(); ++i) {
            const size_t block = first_block + i / kBlockTokens;
            const size_t slot = i % kBlockTokens;
            const uint32_t value = values[layer][i];
            if ((block + 1) * kBlockTokens > end) {
                put(exact_place(layout, sequence, layout.open_page_group(), block, layer, slot), value);
                continue;
            }
            std::byte* page = sequence.pages(layout.group_of(layer))[block];
            for (const size_t offset : places_of(layout, layer, slot).offsets) put(page + offset, value);
            if (block == 0 && layout.keeps_first_exact(layer))
                put(exact_place(layout, sequence, layout.first_page_group(), 0, layer, slot), value);
        }
    }
}

// What a step does between prepare and commit.
inline void write(const KvLayout& layout, const Sequence& sequence, uint64_t extra_key, size_t n_tokens) {
    if (layout.is_quantized()) return write_quantized(layout, sequence, extra_key, n_tokens);
    const size_t begin = sequence.n_computed();
    for_each_mark(sequence.tokens(), extra_key, begin, begin + n_tokens, [&](size_t position, uint64_t mark) {
        for (size_t layer = 0; layer < layout.places.size(); ++layer) {
            std::byte* page = sequence.pages(layout.group_of(layer))[position / kBlockTokens];
            for (const size_t offset : places_of(layout, layer, position % kBlockTokens).offsets)
                put(page + offset, value_of(mark, layer));
        }
    });
}

// Computed positions that the next token would see wrongly.
inline size_t n_wrong(const KvLayout& layout, const Sequence& sequence, uint64_t extra_key) {
    size_t wrong = 0;
    const size_t end = sequence.n_computed();
    for_each_mark(sequence.tokens(), extra_key, 0, end, [&](size_t position, uint64_t mark) {
        const size_t block = position / kBlockTokens;
        const size_t slot = position % kBlockTokens;
        for (size_t layer = 0; layer < layout.places.size(); ++layer) {
            const KvGroup& group = layout.groups[layout.group_of(layer)];
            if (group.window != 0 && position + group.window < end + 1) continue;
            const uint32_t expected = value_of(mark, layer);
            if (layout.is_quantized() && (block + 1) * kBlockTokens > end) {
                wrong += !shows(exact_place(layout, sequence, layout.open_page_group(), block, layer, slot), expected);
                continue;
            }
            const std::byte* page = sequence.pages(layout.group_of(layer))[block];
            for (const size_t offset : places_of(layout, layer, slot).offsets)
                wrong += !page || !shows(page + offset, expected);
            if (block == 0 && layout.keeps_first_exact(layer))
                wrong += !shows(exact_place(layout, sequence, layout.first_page_group(), 0, layer, slot), expected);
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
