#include "cache/prefix_index.h"

#include <array>
#include <catch2/catch.hpp>

using namespace inlay;

namespace {

std::array<int32_t, 16> tokens(int32_t first) {
    std::array<int32_t, 16> result{};
    for (size_t i = 0; i < 16; ++i) result[i] = first + static_cast<int32_t>(i);
    return result;
}

uint64_t always_equal(uint64_t, uint64_t, BlockTokens) {
    return 42;
}

}  // namespace

TEST_CASE("tokens, parent and extra key decide, whatever the hash says") {
    const PrefixHash hash = GENERATE(&hash_prefix, &always_equal);
    PrefixIndex index(1, 10, hash);
    index.reserve(10);
    const auto a = tokens(0);
    const auto b = tokens(1);
    const NodePlace first = index.insert(kNoNode, 0, a);
    index.attach(first, 0, 0);
    CHECK(index.find(kNoNode, 0, a) == first);
    CHECK(index.find(kNoNode, 0, b) == kNoNode);
    CHECK(index.find(kNoNode, 1, a) == kNoNode);
    CHECK(index.find(first, 0, a) == kNoNode);

    const NodePlace child = index.insert(first, 0, a);
    index.attach(child, 0, 1);
    const NodePlace salted = index.insert(kNoNode, 1, a);
    index.attach(salted, 0, 2);
    const NodePlace other = index.insert(kNoNode, 0, b);
    index.attach(other, 0, 3);
    CHECK(index.find(first, 0, a) == child);
    CHECK(index.find(kNoNode, 1, a) == salted);
    CHECK(index.find(kNoNode, 0, b) == other);
    CHECK(index.node_of(3) == other);
    index.check_invariants();

    index.detach(3);
    index.prune(other);
    CHECK(index.find(kNoNode, 0, b) == kNoNode);
    CHECK(index.find(kNoNode, 0, a) == first);
    index.check_invariants();
}

TEST_CASE("a node's place is used again, its id is not") {
    PrefixIndex index(1, 10, &hash_prefix);
    index.reserve(3);
    const auto a = tokens(0);
    const auto b = tokens(100);
    const NodePlace old_parent = index.insert(kNoNode, 0, a);
    index.attach(old_parent, 0, 0);
    const NodePlace child = index.insert(old_parent, 0, b);
    index.attach(child, 0, 1);
    index.detach(1);
    index.prune(child);
    index.detach(0);
    index.prune(old_parent);
    CHECK(index.n_nodes() == 0);

    const NodePlace new_parent = index.insert(kNoNode, 0, b);
    index.attach(new_parent, 0, 0);
    CHECK(new_parent == old_parent);
    CHECK(index.find(new_parent, 0, b) == kNoNode);
    index.check_invariants();
}

TEST_CASE("a node stays while it has a block, a child or a holder") {
    PrefixIndex index(2, 10, &hash_prefix);
    index.reserve(3);
    const auto a = tokens(0);
    const NodePlace parent = index.insert(kNoNode, 0, a);
    index.attach(parent, 1, 5);
    const NodePlace child = index.insert(parent, 0, a);
    index.move_holder(kNoNode, child);
    index.detach(5);
    index.prune(parent);
    CHECK(index.n_nodes() == 2);
    index.check_invariants();
    index.move_holder(child, parent);
    CHECK(index.n_nodes() == 1);
    index.move_holder(parent, kNoNode);
    CHECK(index.n_nodes() == 0);
    index.check_invariants();
}

TEST_CASE("the index grows and finds all") {
    PrefixIndex index(1, 1000, &hash_prefix);
    NodePlace parent = kNoNode;
    for (BlockId i = 0; i < 1000; ++i) {
        index.reserve(i + 1);
        const auto ids = tokens(static_cast<int32_t>(i));
        const NodePlace node = index.insert(i % 7 == 0 ? kNoNode : parent, 3, ids);
        index.attach(node, 0, i);
        CHECK(index.find(i % 7 == 0 ? kNoNode : parent, 3, ids) == node);
        parent = node;
    }
    CHECK(index.n_nodes() == 1000);
    index.check_invariants();
}
