// How the pages of one cache are laid out for one model.
//
// Layers that keep the same span of tokens are cut into groups with equally many layers, so that the page of every
// group has one size and all groups share one list of free blocks. A page holds the keys and values of 16 tokens for
// the layers of one group: layer after layer, head after head, keys [key_dim, 16] and then values [16, value_dim].
#pragma once

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

constexpr size_t element_bytes(KvType type) {
    return type == KvType::kF32 ? 4 : 2;
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

struct KvGroup {
    std::vector<uint32_t> layers;
    uint32_t window = 0;

    // First block that a row at `position` sees.
    size_t first_seen_block(size_t position) const {
        return window == 0 || position < window ? 0 : (position + 1 - window) / kBlockTokens;
    }
    // First block that is kept when `n_computed` tokens are there: what the last of them saw, so that it can be
    // computed again when its logits are wanted once more.
    size_t first_kept_block(size_t n_computed) const { return n_computed == 0 ? 0 : first_seen_block(n_computed - 1); }
    // Most blocks that a sequence of `n_tokens` tokens holds at a time when no step computes more than
    // `max_step_tokens`.
    uint64_t most_blocks(uint64_t n_tokens, uint64_t max_step_tokens) const;
};

struct KvLayout {
    struct Place {
        uint32_t group = 0;
        size_t offset = 0;       // of the layer in the page
        size_t key_bytes = 0;    // of one head
        size_t value_bytes = 0;  // of one head
    };

    KvType key_type = KvType::kF16;
    KvType value_type = KvType::kF16;
    size_t page_bytes = 0;        // a multiple of 64
    std::vector<KvGroup> groups;  // those that keep all positions first, then by ascending window
    std::vector<Place> places;    // [n_layers]

    uint32_t group_of(size_t layer) const { return places[layer].group; }
    size_t key_offset(size_t layer, size_t kv_head) const {
        const Place& place = places[layer];
        return place.offset + kv_head * (place.key_bytes + place.value_bytes);
    }
    size_t value_offset(size_t layer, size_t kv_head) const {
        return key_offset(layer, kv_head) + places[layer].key_bytes;
    }

    // Bytes that one more token takes while it is inside every window.
    size_t bytes_per_token() const { return page_bytes / kBlockTokens * groups.size(); }
    // The same of all groups together.
    uint64_t blocks_for(uint64_t n_tokens, uint64_t max_step_tokens) const;
};

// Throws Error when there is no layer.
KvLayout make_kv_layout(const std::vector<KvLayer>& layers, KvType key_type, KvType value_type);

}  // namespace inlay
