// What the cache can find again: a tree of nodes, each the 16 tokens after its parent's, under an extra key, with a
// block or none in every KV group.
//
// A node's id is never used a second time, so a child can not be mistaken for the child of a node that took its
// parent's place. Equality of parent id, tokens and extra key decides; the hash only finds. A node lives while it has a
// block, a child, or a holder (a sequence whose last full block it is): no parent goes before its child.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/kv_layout.h"
#include "cache/block_pool.h"

namespace inlay {

// Where a node lies; places are used again. The root, which holds nothing, is kNoNode.
using NodePlace = uint32_t;
inline constexpr NodePlace kNoNode = UINT32_MAX;

using BlockTokens = std::span<const int32_t, kBlockTokens>;
inline BlockTokens tokens_of_block(std::span<const int32_t> tokens, size_t block) {
    return tokens.subspan(block * kBlockTokens).first<kBlockTokens>();
}
using PrefixHash = uint64_t (*)(uint64_t parent_id, uint64_t extra_key, BlockTokens tokens);

uint64_t hash_prefix(uint64_t parent_id, uint64_t extra_key, BlockTokens tokens);

class PrefixIndex {
public:
    PrefixIndex(size_t n_groups, size_t n_blocks, PrefixHash hash);

    // Room for `n_nodes` nodes in all; the only function that allocates. Throws std::bad_alloc and changes nothing
    // then.
    void reserve(size_t n_nodes);

    // kNoNode when there is none.
    NodePlace find(NodePlace parent, uint64_t extra_key, BlockTokens tokens) const noexcept;
    // A node that find does not find, without blocks. Room must have been reserved.
    NodePlace insert(NodePlace parent, uint64_t extra_key, BlockTokens tokens) noexcept;

    NodePlace parent(NodePlace node) const { return nodes_[node].parent; }
    BlockId block(NodePlace node, size_t group) const { return blocks_[node * n_groups_ + group]; }
    // kNoNode when the block is not in the index.
    NodePlace node_of(BlockId block) const { return node_of_[block]; }
    size_t group_of(BlockId block) const noexcept;

    void attach(NodePlace node, size_t group, BlockId block) noexcept;
    void detach(BlockId block) noexcept;
    // Moves one holder from a node to another; both may be kNoNode.
    void move_holder(NodePlace from, NodePlace to) noexcept;
    // Removes the node and then its ancestors as far as nothing keeps them.
    void prune(NodePlace node) noexcept;

    size_t n_nodes() const { return n_nodes_; }
    size_t capacity() const { return nodes_.size(); }
    size_t bytes() const;

    // For checks.
    bool is_node(NodePlace place) const { return nodes_[place].id != 0; }
    uint32_t n_holders(NodePlace node) const { return nodes_[node].n_holders; }
    bool matches(NodePlace node, NodePlace parent, uint64_t extra_key, BlockTokens tokens) const noexcept;
    // Throws Error when the tree, the hash table and the way back from blocks disagree.
    void check_invariants() const;

private:
    struct Node {
        uint64_t id = 0;  // 0: the place is empty
        uint64_t extra_key = 0;
        NodePlace parent = kNoNode;
        NodePlace next = kNoNode;  // in the same bucket; of empty places: the next empty one
        uint32_t n_children = 0;
        uint32_t n_holders = 0;
        std::array<int32_t, kBlockTokens> tokens{};
    };

    uint64_t id_of(NodePlace node) const { return node == kNoNode ? 0 : nodes_[node].id; }
    size_t bucket_of(const Node& node) const;
    bool is_kept(NodePlace node) const noexcept;
    void remove(NodePlace node) noexcept;

    size_t n_groups_;
    PrefixHash hash_;
    uint64_t next_id_ = 1;
    size_t n_nodes_ = 0;
    NodePlace first_empty_ = kNoNode;
    std::vector<Node> nodes_;
    std::vector<BlockId> blocks_;     // [places, n_groups]
    std::vector<NodePlace> buckets_;  // a power of two, at least as many as places
    std::vector<NodePlace> node_of_;  // [n_blocks]
};

}  // namespace inlay
