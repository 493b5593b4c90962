#include "backend/kv_layout.h"

#include <map>
#include <numeric>

#include "base/error.h"

namespace inlay {
namespace {

constexpr size_t kAlignment = 64;  // of a cache line, and of the widest vector load

size_t round_up(size_t value) {
    return (value + kAlignment - 1) / kAlignment * kAlignment;
}

// One layer in the page of its group: codes of all layers, then their parameters.
void place_layer(const KvPlane& plane, KvType key_type, KvType value_type, KvLayout::Place& place) {
    place.key_bytes = round_up(kernels::key_code_bytes(key_type, plane.key_dim));
    place.value_bytes = round_up(kernels::value_code_bytes(value_type, plane.value_dim));
    place.key_parameter_bytes = kernels::key_parameter_bytes(key_type, plane.key_dim);
    place.value_parameter_bytes = kernels::value_parameter_bytes(value_type);
    place.exact_key_bytes = round_up(kernels::key_code_bytes(kernels::exact_type(key_type), plane.key_dim));
    place.exact_value_bytes = round_up(kernels::value_code_bytes(kernels::exact_type(value_type), plane.value_dim));
}

// Returns the bytes that the group's page takes.
size_t place_group(const std::vector<KvLayer>& layers, const std::vector<uint32_t>& members, KvLayout& layout) {
    size_t offset = 0;
    for (const uint32_t layer : members) {
        KvLayout::Place& place = layout.places[layer];
        place_layer(layers[layer].plane, layout.key_type, layout.value_type, place);
        place.group = static_cast<uint32_t>(layout.groups.size());
        place.offset = offset;
        offset += layers[layer].plane.n_kv_heads * (place.key_bytes + place.value_bytes);
    }
    for (const uint32_t layer : members) {
        KvLayout::Place& place = layout.places[layer];
        place.parameters_offset = offset;
        offset += layers[layer].plane.n_kv_heads * (place.key_parameter_bytes + place.value_parameter_bytes);
    }
    return round_up(offset);
}

// Exact tiles in the order of the groups, so that those of the groups that keep all positions come first.
void place_exact_tiles(const std::vector<KvLayer>& layers, KvLayout& layout) {
    size_t exact_bytes = 0;
    size_t first_bytes = 0;  // of the layers whose first block stays exact
    for (const KvGroup& group : layout.groups) {
        for (const uint32_t layer : group.layers) {
            layout.places[layer].exact_offset = exact_bytes;
            const size_t layer_bytes = layers[layer].plane.n_kv_heads * layout.exact_head_bytes(layer);
            layout.exact_layer_bytes = std::max(layout.exact_layer_bytes, layer_bytes);
            exact_bytes += layer_bytes;
        }
        if (group.window == 0) first_bytes = exact_bytes;
    }
    const auto pages_of = [&](size_t bytes) { return (bytes + layout.page_bytes - 1) / layout.page_bytes; };
    layout.n_first_pages = layout.key_type == KvType::kInt4 ? pages_of(first_bytes) : 0;
    layout.n_open_pages = pages_of(exact_bytes);
    for (size_t i = 0; i < layout.n_first_pages; ++i) layout.groups.push_back({{}, 0, KvSpan::kFirstBlock, true});
    for (size_t i = 0; i < layout.n_open_pages; ++i) layout.groups.push_back({{}, 0, KvSpan::kOpenBlock, false});
}

}  // namespace

uint64_t KvGroup::most_blocks(uint64_t n_tokens, uint64_t max_step_tokens) const {
    const uint64_t all = end_block(n_tokens);
    if (span == KvSpan::kOpenBlock) return std::min<uint64_t>(all, 1);
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

    const bool is_quantized = kernels::is_quantized(key_type) || kernels::is_quantized(value_type);
    KvLayout layout;
    layout.key_type = key_type;
    layout.value_type = value_type;
    layout.places.resize(layers.size());
    for (const auto& [window, members] : by_window) {
        const KvSpan span = window == 0 ? KvSpan::kAll : KvSpan::kWindow;
        for (auto first = members.begin(); first != members.end(); first += static_cast<ptrdiff_t>(group_size)) {
            KvGroup group{{first, first + static_cast<ptrdiff_t>(group_size)}, window, span, is_quantized};
            layout.page_bytes = std::max(layout.page_bytes, place_group(layers, group.layers, layout));
            layout.groups.push_back(std::move(group));
        }
    }
    layout.n_layer_groups = layout.groups.size();
    if (is_quantized) place_exact_tiles(layers, layout);
    return layout;
}

}  // namespace inlay
