// How the pages of one cache are laid out for one model.
//
// Layers that keep the same span of tokens are cut into groups with equally many layers, so that the page of every
// group has one size and all groups share one list of free blocks. A page holds the keys and values of 16 tokens for
// the layers of one group: layer after layer, head after head, keys and then values; behind them, in the same order,
// the parameters (scales) of those that are quantised.
//
// A cache with quantised keys or values holds only full blocks so. Of the block that is not full, and where keys of
// four bits ask for it of a sequence's first one, it keeps the exact form (docs/kv-quantisation.md): for all layers
// together one array of tiles, cut into pages as it comes. Each of these pages is a group of its own, without layers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/kernels.h"

namespace inlay {

using kernels::kBlockTokens;
using kernels::KvType;

// Blocks that `n_tokens` tokens fill or begin.
constexpr size_t blocks_of(size_t n_tokens) {
    return n_tokens / kBlockTokens + (n_tokens % kBlockTokens != 0);
}

// Keys and values of one layer.
struct KvPlane {
    uint32_t n_kv_heads = 0;
    uint32_t key_dim = 0;
    uint32_t value_dim = 0;
};

struct KvLayer {
    KvPlane plane;
    uint32_t window = 0;  // positions a row sees, its own included; 0: all
};

// Which blocks of a sequence a group holds.
enum class KvSpan : uint8_t {
    kAll,
    kWindow,      // those that the window still reaches
    kFirstBlock,  // once it is full
    kOpenBlock    // while it is not full
};

struct KvGroup {
    std::vector<uint32_t> layers;
    uint32_t window = 0;
    KvSpan span = KvSpan::kAll;
    bool only_full_blocks = false;

    // Held from the beginning on: of a path in the prefix index these blocks are never missing.
    bool keeps_all() const { return span == KvSpan::kAll || span == KvSpan::kFirstBlock; }
    // Blocks below this one are held, or were, when `n_tokens` tokens are there.
    size_t end_block(size_t n_tokens) const {
        if (span == KvSpan::kFirstBlock) return std::min<size_t>(1, n_tokens / kBlockTokens);
        return only_full_blocks ? n_tokens / kBlockTokens : blocks_of(n_tokens);
    }
    // First block that a row at `position` sees.
    size_t first_seen_block(size_t position) const {
        if (span == KvSpan::kOpenBlock) return position / kBlockTokens;
        return window == 0 || position < window ? 0 : (position + 1 - window) / kBlockTokens;
    }
    // First block that is kept when `n_computed` tokens are there: what the last of them saw, so that it can be
    // computed again when its logits are wanted once more. An open block is kept no longer than it is open.
    size_t first_kept_block(size_t n_computed) const {
        if (span == KvSpan::kOpenBlock) return n_computed / kBlockTokens;
        return n_computed == 0 ? 0 : first_seen_block(n_computed - 1);
    }
    // Most blocks that a sequence of `n_tokens` tokens holds at a time when no step computes more than
    // `max_step_tokens`.
    uint64_t most_blocks(uint64_t n_tokens, uint64_t max_step_tokens) const;
};

struct KvLayout {
    struct Place {
        uint32_t group = 0;
        size_t offset = 0;             // of the layer in the page
        size_t key_bytes = 0;          // of one head
        size_t value_bytes = 0;        // of one head
        size_t parameters_offset = 0;  // of the layer in the page
        size_t key_parameter_bytes = 0;
        size_t value_parameter_bytes = 0;
        size_t exact_offset = 0;  // of the layer in the array of exact tiles
        size_t exact_key_bytes = 0;
        size_t exact_value_bytes = 0;
    };

    KvType key_type = KvType::kF16;
    KvType value_type = KvType::kF16;
    size_t page_bytes = 0;        // a multiple of 64
    std::vector<KvGroup> groups;  // those with layers, of them first those that keep all positions, then by ascending
                                  // window; then the pages of first blocks, then those of open blocks
    std::vector<Place> places;    // [n_layers]
    size_t n_layer_groups = 0;
    size_t n_first_pages = 0;
    size_t n_open_pages = 0;       // 0: nothing is quantised
    size_t exact_layer_bytes = 0;  // most of any layer: the exact tiles of one block

    bool is_quantized() const { return n_open_pages != 0; }
    size_t first_page_group() const { return n_layer_groups; }
    size_t open_page_group() const { return n_layer_groups + n_first_pages; }

    uint32_t group_of(size_t layer) const { return places[layer].group; }
    size_t key_offset(size_t layer, size_t kv_head) const {
        const Place& place = places[layer];
        return place.offset + kv_head * (place.key_bytes + place.value_bytes);
    }
    size_t value_offset(size_t layer, size_t kv_head) const {
        return key_offset(layer, kv_head) + places[layer].key_bytes;
    }
    size_t key_parameters_offset(size_t layer, size_t kv_head) const {
        const Place& place = places[layer];
        return place.parameters_offset + kv_head * (place.key_parameter_bytes + place.value_parameter_bytes);
    }
    size_t value_parameters_offset(size_t layer, size_t kv_head) const {
        return key_parameters_offset(layer, kv_head) + places[layer].key_parameter_bytes;
    }
    // Bytes of one head's exact keys and then values; head follows head.
    size_t exact_head_bytes(size_t layer) const {
        return places[layer].exact_key_bytes + places[layer].exact_value_bytes;
    }
    // In the array of exact tiles.
    size_t exact_offset(size_t layer, size_t kv_head) const {
        return places[layer].exact_offset + kv_head * exact_head_bytes(layer);
    }
    // Whether rows after the first block see its exact form.
    bool keeps_first_exact(size_t layer) const { return n_first_pages != 0 && groups[group_of(layer)].window == 0; }

    // Bytes of the exact tiles of one layer that a step with these rows has at hand: of all blocks that it writes to,
    // and of the first one. 0 where nothing is quantised.
    size_t step_tile_bytes(size_t first_position, size_t n_rows) const {
        const size_t n_written = blocks_of(first_position + n_rows) - first_position / kBlockTokens;
        return (n_written + has_first_tile(first_position)) * exact_layer_bytes;
    }
    // Whether the exact form of the first block comes from its pages in a step that begins there.
    bool has_first_tile(size_t first_position) const { return n_first_pages != 0 && first_position >= kBlockTokens; }

    // Bytes that one more token takes while it is inside every window.
    size_t bytes_per_token() const { return page_bytes / kBlockTokens * n_layer_groups; }
    // The same of all groups together.
    uint64_t blocks_for(uint64_t n_tokens, uint64_t max_step_tokens) const;
    // Of a cache, whatever it is for: a block of each group.
    uint64_t least_bytes() const { return page_bytes * groups.size(); }
};

// Throws Error when there is no layer.
KvLayout make_kv_layout(const std::vector<KvLayer>& layers, KvType key_type, KvType value_type);

}  // namespace inlay
