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
