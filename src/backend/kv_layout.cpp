#include "backend/kv_layout.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"

namespace inlay {
namespace {

constexpr size_t kAlignment = 64;  // of a cache line, and of the widest vector load

size_t round_up(size_t value) {
    return (value + kAlignment - 1) / kAlignment * kAlignment;
}

size_t plane_bytes(uint32_t dim, KvType type) {
    return round_up(size_t{dim} * kBlockTokens * element_bytes(type));
}

}  // namespace

uint64_t KvGroup::most_blocks(uint64_t n_tokens, uint64_t max_step_tokens) const {
    const uint64_t all = n_tokens / kBlockTokens + (n_tokens % kBlockTokens != 0);
    // A window and a step that both begin and end inside blocks.
    const uint64_t in_window = (window + std::min(max_step_tokens, n_tokens)) / kBlockTokens + 2;
    return window == 0 ? all : std::min(all, in_window);
}

uint64_t KvLayout::blocks_for(uint64_t n_tokens, uint64_t max_step_tokens) const {
    uint64_t total = 0;
    for (const KvGroup& group : groups) total += group.most_blocks(n_tokens, max_step_tokens);
    return total;
}

KvLayout make_kv_layout(const std::vector<KvLayer>& layers, KvType key_type, KvType value_type) {
    if (layers.empty()) throw Error(INLAY_E_UNSUPPORTED, "a model without attention layers has nothing to cache");

    std::map<uint32_t, std::vector<uint32_t>> by_window;
    for (uint32_t layer = 0; layer < layers.size(); ++layer) by_window[layers[layer].window].push_back(layer);
    size_t group_size = 0;
    for (const auto& [window, members] : by_window) group_size = std::gcd(group_size, members.size());

    KvLayout layout;
    layout.key_type = key_type;
    layout.value_type = value_type;
    layout.places.resize(layers.size());
    for (const auto& [window, members] : by_window) {
        for (size_t first = 0; first < members.size(); first += group_size) {
            size_t offset = 0;
            KvGroup group{{}, window};
            for (size_t i = first; i < first + group_size; ++i) {
                const KvPlane& plane = layers[members[i]].plane;
                KvLayout::Place& place = layout.places[members[i]];
                place.group = static_cast<uint32_t>(layout.groups.size());
                place.offset = offset;
                place.key_bytes = plane_bytes(plane.key_dim, key_type);
                place.value_bytes = plane_bytes(plane.value_dim, value_type);
                offset += plane.n_kv_heads * (place.key_bytes + place.value_bytes);
                group.layers.push_back(members[i]);
            }
            layout.page_bytes = std::max(layout.page_bytes, offset);
            layout.groups.push_back(std::move(group));
        }
    }
    return layout;
}

}  // namespace inlay
