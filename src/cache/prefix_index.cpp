#include "cache/prefix_index.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/xxhash.h"

namespace inlay {

uint64_t hash_prefix(uint64_t parent_id, uint64_t extra_key, BlockTokens tokens) {
    const uint64_t path[2] = {parent_id, extra_key};
    return XXH3_64bits_withSeed(tokens.data(), tokens.size_bytes(), XXH3_64bits(path, sizeof path));
}

PrefixIndex::PrefixIndex(size_t n_groups, size_t n_blocks, PrefixHash hash)
    : n_groups_(n_groups), hash_(hash), buckets_(1, kNoNode), node_of_(n_blocks, kNoNode) {}

void PrefixIndex::reserve(size_t n_nodes) {
    const size_t old_size = nodes_.size();
    if (n_nodes <= old_size) return;
    constexpr size_t kFewest = 64;
    const size_t new_size = std::max({n_nodes, old_size * 3 / 2, kFewest});
    std::vector<NodePlace> buckets(std::bit_ceil(new_size), kNoNode);
    blocks_.reserve(new_size * n_groups_);
    nodes_.reserve(new_size);

    blocks_.resize(new_size * n_groups_, kNoBlock);
    nodes_.resize(new_size);
    buckets_.swap(buckets);
    for (size_t place = new_size; place-- > 0;) {
        Node& node = nodes_[place];
        NodePlace& list = node.id == 0 ? first_empty_ : buckets_[bucket_of(node)];
        if (node.id == 0 && place < old_size) continue;  // in the list of empty places already
        node.next = list;
        list = static_cast<NodePlace>(place);
    }
}

size_t PrefixIndex::bucket_of(const Node& node) const {
    return hash_(id_of(node.parent), node.extra_key, node.tokens) & (buckets_.size() - 1);
}

bool PrefixIndex::matches(NodePlace place, NodePlace parent, uint64_t extra_key, BlockTokens tokens) const noexcept {
    const Node& node = nodes_[place];
    return node.id != 0 && id_of(node.parent) == id_of(parent) && node.extra_key == extra_key &&
           std::memcmp(node.tokens.data(), tokens.data(), tokens.size_bytes()) == 0;
}

NodePlace PrefixIndex::find(NodePlace parent, uint64_t extra_key, BlockTokens tokens) const noexcept {
    NodePlace place = buckets_[hash_(id_of(parent), extra_key, tokens) & (buckets_.size() - 1)];
    while (place != kNoNode && !matches(place, parent, extra_key, tokens)) place = nodes_[place].next;
    return place;
}

NodePlace PrefixIndex::insert(NodePlace parent, uint64_t extra_key, BlockTokens tokens) noexcept {
    const NodePlace place = first_empty_;
    Node& node = nodes_[place];
    first_empty_ = node.next;
    node.id = next_id_++;
    node.extra_key = extra_key;
    node.parent = parent;
    node.n_children = 0;
    node.n_holders = 0;
    std::copy(tokens.begin(), tokens.end(), node.tokens.begin());
    NodePlace& bucket = buckets_[bucket_of(node)];
    node.next = bucket;
    bucket = place;
    if (parent != kNoNode) ++nodes_[parent].n_children;
    ++n_nodes_;
    return place;
}

size_t PrefixIndex::group_of(BlockId block) const noexcept {
    const BlockId* blocks = blocks_.data() + node_of_[block] * n_groups_;
    return static_cast<size_t>(std::find(blocks, blocks + n_groups_, block) - blocks);
}

void PrefixIndex::attach(NodePlace node, size_t group, BlockId block) noexcept {
    blocks_[node * n_groups_ + group] = block;
    node_of_[block] = node;
}

void PrefixIndex::detach(BlockId block) noexcept {
    blocks_[node_of_[block] * n_groups_ + group_of(block)] = kNoBlock;
    node_of_[block] = kNoNode;
}

void PrefixIndex::move_holder(NodePlace from, NodePlace to) noexcept {
    if (to != kNoNode) ++nodes_[to].n_holders;
    if (from == kNoNode) return;
    --nodes_[from].n_holders;
    prune(from);
}

bool PrefixIndex::is_kept(NodePlace place) const noexcept {
    const Node& node = nodes_[place];
    const BlockId* blocks = blocks_.data() + place * n_groups_;
    return node.n_children != 0 || node.n_holders != 0 ||
           std::any_of(blocks, blocks + n_groups_, [](BlockId block) { return block != kNoBlock; });
}

void PrefixIndex::prune(NodePlace node) noexcept {
    while (node != kNoNode && !is_kept(node)) {
        const NodePlace parent = nodes_[node].parent;
        remove(node);
        node = parent;
    }
}

void PrefixIndex::remove(NodePlace place) noexcept {
    Node& node = nodes_[place];
    NodePlace* link = &buckets_[bucket_of(node)];
    while (*link != place) link = &nodes_[*link].next;
    *link = node.next;
    if (node.parent != kNoNode) --nodes_[node.parent].n_children;
    node.id = 0;
    node.next = first_empty_;
    first_empty_ = place;
    --n_nodes_;
}

size_t PrefixIndex::bytes() const {
    return nodes_.capacity() * sizeof(Node) + blocks_.capacity() * sizeof(BlockId) +
           (buckets_.capacity() + node_of_.capacity()) * sizeof(NodePlace);
}

void PrefixIndex::check_invariants() const {
    std::vector<uint32_t> n_children(nodes_.size(), 0);
    size_t n_nodes = 0;
    size_t n_attached = 0;
    for (NodePlace place = 0; place < nodes_.size(); ++place) {
        const Node& node = nodes_[place];
        if (node.id == 0) continue;
        ++n_nodes;
        if (node.id >= next_id_) throw Error(INLAY_E_INTERNAL, "prefix index: an id from the future");
        if (find(node.parent, node.extra_key, node.tokens) != place) {
            throw Error(INLAY_E_INTERNAL, "prefix index: a node is not found, or there are two of it");
        }
        if (!is_kept(place)) throw Error(INLAY_E_INTERNAL, "prefix index: a node that nothing keeps");
        if (node.parent != kNoNode) {
            if (!is_node(node.parent) || nodes_[node.parent].id >= node.id) {
                throw Error(INLAY_E_INTERNAL, "prefix index: a parent is gone");
            }
            ++n_children[node.parent];
        }
        for (size_t group = 0; group < n_groups_; ++group) {
            const BlockId attached = block(place, group);
            if (attached == kNoBlock) continue;
            ++n_attached;
            if (node_of_[attached] != place)
                throw Error(INLAY_E_INTERNAL, "prefix index: a block leads to another node");
        }
    }
    for (NodePlace place = 0; place < nodes_.size(); ++place) {
        if (is_node(place) && nodes_[place].n_children != n_children[place]) {
            throw Error(INLAY_E_INTERNAL, "prefix index: wrong count of children");
        }
    }
    size_t n_empty = 0;
    for (NodePlace place = first_empty_; place != kNoNode; place = nodes_[place].next) ++n_empty;
    const auto n_back = std::count_if(node_of_.begin(), node_of_.end(), [](NodePlace n) { return n != kNoNode; });
    if (n_nodes != n_nodes_ || n_empty + n_nodes != nodes_.size() || static_cast<size_t>(n_back) != n_attached) {
        throw Error(INLAY_E_INTERNAL, "prefix index: wrong count of nodes or blocks");
    }
}

}  // namespace inlay
