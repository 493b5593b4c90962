// The part of Cache that moves a sequence along its path in the prefix index: forward when a prefix is taken over, back
// when it is cut, and out of its windows.
#include <algorithm>

#include "cache/cache.h"

namespace inlay {

size_t Cache::path_length(const Sequence& sequence) const {
    return shares(sequence) ? sequence.n_computed_ / kBlockTokens : 0;
}

NodePlace Cache::ancestor(NodePlace node, size_t length, size_t wanted_length) const noexcept {
    for (; length > wanted_length; --length) node = index_.parent(node);
    return node;
}

// The longest prefix, of at most `n_tokens` tokens, after which a token can be computed: all blocks that its windows
// reach are on the path that ends in `node` or, where that has no node, in the sequence's tables, and so is an open
// block. Groups that keep all positions are never short of a block. Descends block by block; one that is missing
// lowers the result to its beginning, and with it what the windows reach.
size_t Cache::usable_prefix(const Sequence& sequence, NodePlace node, size_t length, size_t n_tokens) const noexcept {
    size_t n_usable = n_tokens;
    for (size_t index = blocks_of(n_tokens); index-- > 0;) {
        node = ancestor(node, length, index + 1);
        length = std::min(length, index + 1);
        bool is_reached = false;
        for (size_t group = 0; group < n_groups(); ++group) {
            const KvGroup& kv_group = layout_.groups[group];
            if (kv_group.keeps_all() || index < kv_group.first_seen_block(n_usable)) continue;
            is_reached = true;
            if (index >= kv_group.end_block(n_usable)) continue;
            const bool on_path = length == index + 1 && kv_group.span != KvSpan::kOpenBlock;
            if ((on_path ? index_.block(node, group) : sequence.tables_[group].block(index)) != kNoBlock) continue;
            n_usable = index * kBlockTokens;
            break;
        }
        if (!is_reached) break;
    }
    return n_usable;
}

void Cache::fork(Sequence& parent, Sequence& child, size_t n_tokens) {
    const std::lock_guard lock(mutex_);
    const std::span<const int32_t> tokens = std::span(parent.tokens_).first(n_tokens);
    const size_t n_blocks = blocks_of(parent.n_computed_);
    for (BlockTable& table : child.tables_) table.reserve(n_blocks);
    child.tokens_.assign(tokens.begin(), tokens.end());

    rewind(parent, parent.n_computed_);
    for (size_t group = 0; group < n_groups(); ++group) {
        const BlockTable& from = parent.tables_[group];
        BlockTable& to = child.tables_[group];
        to.extend(n_blocks);
        for (size_t index = from.first(); index < n_blocks; ++index) {
            const BlockId block = from.block(index);
            if (block == kNoBlock) continue;
            acquire(block);
            to.set(index, block, pool_.page(block));
        }
    }
    index_.move_holder(child.last_node_, parent.last_node_);
    child.last_node_ = parent.last_node_;
    child.is_private_ = parent.is_private();
    set_progress(child, parent.n_computed_, parent.n_computed_);
    rewind(child, n_tokens);
    set_promise(parent, parent.promised_end_);
}

void Cache::rewind(Sequence& sequence, size_t n_computed) noexcept {
    const size_t length = path_length(sequence);
    const size_t n_wanted = std::min(n_computed, sequence.n_computed());
    settle(sequence, sequence.last_node_, length, usable_prefix(sequence, sequence.last_node_, length, n_wanted));
}

// Gives the sequence the blocks of its first `n_computed` tokens, those it lacks from the path that ends in `node`, and
// takes the others away. Room in the tables must have been reserved.
void Cache::settle(Sequence& sequence, NodePlace node, size_t length, size_t n_computed) noexcept {
    take_from_path(sequence, node, length, n_computed);
    give_back_beyond(sequence, n_computed);
    set_progress(sequence, n_computed, n_computed);
    leave_windows(sequence);

    const NodePlace last_node = ancestor(node, length, n_computed / kBlockTokens);
    index_.move_holder(sequence.last_node_, last_node);
    sequence.last_node_ = last_node;
    if (n_computed == 0) sequence.is_private_ = false;
    set_promise(sequence, sequence.promised_end_);
}

void Cache::take_from_path(Sequence& sequence, NodePlace node, size_t length, size_t n_computed) noexcept {
    const size_t n_blocks = blocks_of(n_computed);
    const size_t old_size = sequence.n_blocks();
    size_t lowest_missing = n_blocks;
    for (size_t group = 0; group < n_groups(); ++group) {
        const size_t first_seen = layout_.groups[group].first_seen_block(n_computed);
        BlockTable& table = sequence.tables_[group];
        lowest_missing = std::min(lowest_missing, first_seen < table.first() ? first_seen : old_size);
        table.extend(std::max(n_blocks, old_size));
    }
    for (size_t index = n_blocks; index-- > lowest_missing;) {
        node = ancestor(node, length, index + 1);
        length = std::min(length, index + 1);
        if (length != index + 1) continue;  // a partial block is not on the path, and never missing
        for (size_t group = 0; group < n_groups(); ++group) {
            BlockTable& table = sequence.tables_[group];
            const KvGroup& kv_group = layout_.groups[group];
            const bool is_seen =
                index >= kv_group.first_seen_block(n_computed) && index < kv_group.end_block(n_computed);
            if (!is_seen || table.block(index) != kNoBlock) continue;
            const BlockId block = index_.block(node, group);
            acquire(block);
            table.set(index, block, pool_.page(block));
        }
    }
}

void Cache::give_back_all(Sequence& sequence) noexcept {
    set_promise(sequence, 0);
    rewind(sequence, 0);
}

// From the tail, in all groups: so blocks become cached in the order in which they may be evicted.
void Cache::give_back_beyond(Sequence& sequence, size_t n_tokens) noexcept {
    for (size_t index = sequence.n_blocks(); index-- > n_tokens / kBlockTokens;) {
        for (size_t group = 0; group < n_groups(); ++group) {
            BlockTable& table = sequence.tables_[group];
            if (table.block(index) == kNoBlock || index < layout_.groups[group].end_block(n_tokens)) continue;
            let_go(table.block(index));
            table.remove(index);
        }
    }
    const size_t n_blocks = std::min(blocks_of(n_tokens), sequence.n_blocks());
    for (BlockTable& table : sequence.tables_) table.shrink(n_blocks);
}

void Cache::leave_windows(Sequence& sequence) noexcept {
    for (size_t group = 0; group < n_groups(); ++group) {
        BlockTable& table = sequence.tables_[group];
        const size_t first_kept = layout_.groups[group].first_kept_block(sequence.n_computed_);
        while (table.first() < std::min(first_kept, table.size())) {
            const size_t index = table.first();
            let_go(table.block(index));
            table.remove(index);
        }
    }
}

void Cache::set_progress(Sequence& sequence, size_t n_computed, size_t prepared_end) noexcept {
    n_promised_nodes_ -= promised_nodes(sequence.n_computed_, sequence.prepared_end_);
    sequence.n_computed_ = n_computed;
    sequence.prepared_end_ = prepared_end;
    n_promised_nodes_ += promised_nodes(n_computed, prepared_end);
}

}  // namespace inlay
