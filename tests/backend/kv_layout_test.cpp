#include "backend/kv_layout.h"

#include <catch2/catch.hpp>
#include <set>

#include "base/error.h"

using namespace inlay;

TEST_CASE("a model of full layers is one group") {
    const KvLayout layout = make_kv_layout(std::vector<KvLayer>(30, {{3, 64, 64}, 0}), KvType::kF16, KvType::kF16);
    REQUIRE(layout.groups.size() == 1);
    CHECK(layout.groups[0].layers.size() == 30);
    CHECK(layout.bytes_per_token() == 30 * 3 * 64 * 2 * 2);
    CHECK(layout.page_bytes == 16 * layout.bytes_per_token());
    CHECK(layout.blocks_for(33, 512) == 3);
}

TEST_CASE("three full layers and fifteen with a window are six groups of three") {
    std::vector<KvLayer> layers(18, {{1, 256, 256}, 512});
    for (size_t i = 5; i < 18; i += 6) layers[i].window = 0;
    const KvLayout layout = make_kv_layout(layers, KvType::kF16, KvType::kF32);
    REQUIRE(layout.groups.size() == 6);
    CHECK(layout.groups[0].window == 0);
    CHECK(layout.groups[0].layers == std::vector<uint32_t>{5, 11, 17});
    for (size_t g = 1; g < 6; ++g) CHECK((layout.groups[g].window == 512 && layout.groups[g].layers.size() == 3));
    CHECK(layout.page_bytes == 3 * 256 * 16 * (2 + 4));
    // All 500 blocks of the full group, at most 512 + 512 positions of the others.
    CHECK(layout.blocks_for(8000, 512) == 500 + 5 * 66);
    CHECK(layout.blocks_for(16, 512) == 6);
}

TEST_CASE("planes of a page do not overlap and are aligned") {
    std::vector<KvLayer> layers;
    for (uint32_t i = 0; i < 6; ++i) layers.push_back({{1 + i % 2, 8 + 8 * i, 24}, i % 3 == 0 ? 0u : 40u});
    const KvLayout layout = make_kv_layout(layers, KvType::kF16, KvType::kF32);
    REQUIRE(layout.groups.size() == 3);
    CHECK(layout.page_bytes % 64 == 0);
    for (const KvGroup& group : layout.groups) {
        std::set<std::pair<size_t, size_t>> planes;
        for (const uint32_t layer : group.layers) {
            for (uint32_t head = 0; head < layers[layer].plane.n_kv_heads; ++head) {
                const size_t keys = layout.key_offset(layer, head);
                const size_t values = layout.value_offset(layer, head);
                planes.insert({keys, keys + layers[layer].plane.key_dim * 16 * 2});
                planes.insert({values, values + layers[layer].plane.value_dim * 16 * 4});
            }
        }
        size_t end = 0;
        for (const auto& plane : planes) {
            CHECK(plane.first % 64 == 0);
            CHECK(plane.first >= end);
            end = plane.second;
        }
        CHECK(end <= layout.page_bytes);
    }
}

TEST_CASE("what a window sees and keeps") {
    const KvGroup group{{}, 40};
    CHECK(group.first_seen_block(39) == 0);
    CHECK(group.first_seen_block(54) == 0);  // sees 15..54
    CHECK(group.first_seen_block(55) == 1);
    CHECK(group.first_kept_block(55) == 0);  // the last of 55 tokens saw 15
    CHECK(group.first_kept_block(56) == 1);
    CHECK(KvGroup{{}, 0}.first_seen_block(100000) == 0);
    CHECK(KvGroup{{}, 1}.first_seen_block(32) == 2);
}

TEST_CASE("a model without layers has no layout") {
    CHECK_THROWS_AS(make_kv_layout({}, KvType::kF16, KvType::kF16), Error);
}

namespace {

// SmolLM2-135M and Gemma 3 270M.
std::vector<KvLayer> full_layers() {
    return std::vector<KvLayer>(30, {{3, 64, 64}, 0});
}
std::vector<KvLayer> layers_with_windows() {
    std::vector<KvLayer> layers(18, {{1, 256, 256}, 512});
    for (size_t i = 5; i < 18; i += 6) layers[i].window = 0;
    return layers;
}

double part_of_f16(const std::vector<KvLayer>& layers, KvType type, size_t n_tokens) {
    const auto bytes = [&](const KvLayout& layout) {
        return static_cast<double>(layout.blocks_for(n_tokens, 512) * layout.page_bytes);
    };
    return bytes(make_kv_layout(layers, type, type)) / bytes(make_kv_layout(layers, KvType::kF16, KvType::kF16));
}

}  // namespace

TEST_CASE("4,096 tokens take half and a third of f16's bytes, open blocks included") {
    for (const auto& layers : {full_layers(), layers_with_windows()}) {
        CAPTURE(layers.size(), part_of_f16(layers, KvType::kInt8, 4096), part_of_f16(layers, KvType::kInt4, 4096));
        CHECK(part_of_f16(layers, KvType::kBf16, 4096) == 1.0);
        for (const size_t n_tokens : {size_t{4095}, size_t{4096}}) {
            CHECK(part_of_f16(layers, KvType::kInt8, n_tokens) <= 0.54);
            CHECK(part_of_f16(layers, KvType::kInt4, n_tokens) <= 0.30);
        }
    }
}

TEST_CASE("a quantised layout has a page for every part of the exact form") {
    for (const auto& layers : {full_layers(), layers_with_windows()}) {
        const KvLayout f16 = make_kv_layout(layers, KvType::kF16, KvType::kF16);
        const KvLayout layout = make_kv_layout(layers, KvType::kInt4, KvType::kInt4);
        CHECK(layout.n_layer_groups == f16.groups.size());
        CHECK(layout.groups.size() == layout.n_layer_groups + layout.n_first_pages + layout.n_open_pages);
        const size_t exact_bytes = f16.page_bytes * f16.groups.size();
        CHECK(layout.n_open_pages == (exact_bytes + layout.page_bytes - 1) / layout.page_bytes);
        CHECK(layout.n_first_pages == (f16.page_bytes + layout.page_bytes - 1) / layout.page_bytes);
        for (size_t i = 0; i < layout.groups.size(); ++i) {
            const KvGroup& group = layout.groups[i];
            CHECK(group.layers.empty() == (i >= layout.n_layer_groups));
            CHECK((group.span == KvSpan::kFirstBlock) ==
                  (i >= layout.first_page_group() && i < layout.open_page_group()));
            CHECK((group.span == KvSpan::kOpenBlock) == (i >= layout.open_page_group()));
        }
        size_t end = 0;  // tiles follow each other, those that keep their first block exact before the others
        for (size_t group = 0; group < layout.n_layer_groups; ++group) {
            for (const uint32_t layer : layout.groups[group].layers) {
                CHECK(layout.exact_offset(layer, 0) == end);
                end += layers[layer].plane.n_kv_heads * layout.exact_head_bytes(layer);
                CHECK(layout.keeps_first_exact(layer) == (layers[layer].window == 0));
            }
        }
        CHECK(end == exact_bytes);
    }
    CHECK_FALSE(make_kv_layout(full_layers(), KvType::kBf16, KvType::kF32).is_quantized());
    CHECK(make_kv_layout(full_layers(), KvType::kF16, KvType::kInt8).n_first_pages == 0);
}

TEST_CASE("which blocks the groups of a quantised layout hold") {
    const KvGroup closed{{}, 0, KvSpan::kAll, true};
    CHECK(closed.end_block(31) == 1);
    CHECK(closed.end_block(32) == 2);
    CHECK(closed.most_blocks(31, 512) == 1);
    const KvGroup open{{}, 0, KvSpan::kOpenBlock, false};
    CHECK((open.first_seen_block(31) == 1 && open.end_block(31) == 2));
    CHECK((open.first_seen_block(32) == 2 && open.end_block(32) == 2));
    CHECK(open.most_blocks(1000, 512) == 1);
    const KvGroup first{{}, 0, KvSpan::kFirstBlock, true};
    CHECK((first.end_block(15) == 0 && first.end_block(16) == 1 && first.end_block(100) == 1));
    CHECK(first.first_seen_block(5000) == 0);
}
