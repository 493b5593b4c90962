// What must hold after every call, checked from scratch: tests call it after each step.
#include <vector>

#include "base/error.h"
#include "cache/cache.h"

namespace inlay {
namespace {

void require(bool holds, const char* what) {
    if (!holds) throw Error(INLAY_E_INTERNAL, std::string("cache: ") + what);
}

}  // namespace

void Cache::check_invariants() const {
    const std::lock_guard lock(mutex_);
    pool_.check_invariants();
    index_.check_invariants();
    for (const Sequence* sequence = sequences_; sequence; sequence = sequence->next_) check_sequence(*sequence);
    check_blocks();
    check_nodes();
}

bool Cache::may_hold(const Sequence& sequence, const KvGroup& group, size_t index) const {
    const size_t n_computed = sequence.n_computed_;
    if (group.span == KvSpan::kOpenBlock)
        return index == n_computed / kBlockTokens || index == sequence.prepared_end_ / kBlockTokens;
    return index >= group.first_kept_block(n_computed) && index < group.end_block(sequence.prepared_end_);
}

bool Cache::must_hold(const Sequence& sequence, const KvGroup& group, size_t index) const {
    const bool is_prepared = sequence.prepared_end_ > sequence.n_computed();
    // What was the open block may have become the next one.
    if (group.span == KvSpan::kOpenBlock && is_prepared)
        return index == sequence.prepared_end_ / kBlockTokens && sequence.prepared_end_ % kBlockTokens != 0;
    return index >= group.first_seen_block(sequence.n_computed()) && index < group.end_block(sequence.prepared_end_);
}

void Cache::check_sequence(const Sequence& sequence) const {
    const size_t size = sequence.n_blocks();
    const size_t n_computed = sequence.n_computed_;
    require(n_computed <= sequence.tokens_.size(), "more tokens computed than there are");
    require(n_computed <= sequence.prepared_end_ && blocks_of(sequence.prepared_end_) <= size,
            "positions without block");

    for (size_t group = 0; group < n_groups(); ++group) {
        const BlockTable& table = sequence.tables_[group];
        require(table.size() == size, "block tables of different lengths");
        const KvGroup& kv_group = layout_.groups[group];
        const bool is_prepared = sequence.prepared_end_ > n_computed;
        const size_t first_written =
            (kv_group.span == KvSpan::kOpenBlock ? sequence.prepared_end_ : n_computed) / kBlockTokens;
        size_t n_held = 0;
        for (size_t i = 0; i < size; ++i) {
            const BlockId block = table.block(i);
            require(table.pages()[i] == (block == kNoBlock ? nullptr : pool_.page(block)), "the page of another block");
            require(block == kNoBlock || may_hold(sequence, kv_group, i), "a block held outside the span of its group");
            require(block != kNoBlock || !must_hold(sequence, kv_group, i),
                    "a block left inside the span of its group");
            if (block == kNoBlock) continue;
            ++n_held;
            require(i >= table.first(), "a block below the first");
            require(!sequence.is_private() || index_.node_of(block) == kNoNode, "a private block that others find");
            require(!is_prepared || i < first_written || is_writable(block), "a block to be written that others see");
        }
        require(n_held == table.n_held(), "wrong count of a table's blocks");
        require(table.first() == size || table.block(table.first()) != kNoBlock, "a first block that is none");
    }

    NodePlace node = sequence.last_node_;
    for (size_t i = path_length(sequence); i-- > 0; node = index_.parent(node)) {
        require(node != kNoNode, "a path that is too short");
        require(index_.matches(node, index_.parent(node), sequence.extra_key_, tokens_of_block(sequence.tokens_, i)),
                "the path of other tokens");
        for (size_t group = 0; group < n_groups(); ++group) {
            const BlockId own = sequence.tables_[group].block(i);
            require(own == kNoBlock || own == index_.block(node, group), "a full block that is not its node's");
        }
    }
    require(node == kNoNode, "a path that is too long");
}

void Cache::check_blocks() const {
    std::vector<uint32_t> holders(pool_.n_blocks(), 0);
    size_t n_promised = 0;
    uint64_t n_promised_blocks = 0;
    size_t n_with_room = 0;
    for (const Sequence* sequence = sequences_; sequence; sequence = sequence->next_) {
        n_promised += promised_nodes(sequence->n_computed_, sequence->prepared_end_);
        n_promised_blocks += sequence->n_promised_blocks_;
        n_with_room += sequence->promised_end_ != 0;
        for (const BlockTable& table : sequence->tables_) {
            for (size_t i = 0; i < table.size(); ++i) {
                if (table.block(i) != kNoBlock) ++holders[table.block(i)];
            }
        }
    }
    require(n_promised == n_promised_nodes_, "wrong count of promised nodes");
    require(n_promised_blocks == n_promised_blocks_ && n_with_room == n_with_room_, "wrong count of promised blocks");
    require(no_reuse_ || index_.n_nodes() + n_promised <= index_.capacity(), "no room for promised nodes");

    for (BlockId block = 0; block < pool_.n_blocks(); ++block) {
        const bool is_indexed = index_.node_of(block) != kNoNode;
        require(pool_.ref_count(block) == holders[block], "a ref_count that is not the number of holders");
        require(!pool_.is_free(block) || !is_indexed, "a free block in the index");
        const bool is_cached = !pool_.is_free(block) && holders[block] == 0;
        require(!is_cached || is_indexed, "a lost block");
        require(is_cached == queue_.contains(block), "cached and in the queue are not the same");
    }
    require(queue_.size() == pool_.n_cached(), "wrong length of the queue");
}

void Cache::check_nodes() const {
    std::vector<uint32_t> holders(index_.capacity(), 0);
    for (const Sequence* sequence = sequences_; sequence; sequence = sequence->next_) {
        if (sequence->last_node_ != kNoNode) ++holders[sequence->last_node_];
    }
    std::vector<size_t> turn(pool_.n_blocks(), SIZE_MAX);  // in the queue; held blocks come never
    size_t n = 0;
    for (BlockId block = queue_.front(); block != kNoBlock; block = queue_.next(block)) turn[block] = n++;

    for (NodePlace node = 0; node < index_.capacity(); ++node) {
        if (!index_.is_node(node)) continue;
        require(index_.n_holders(node) == holders[node], "wrong count of a node's holders");
        const NodePlace parent = index_.parent(node);
        for (size_t group = 0; group < n_groups(); ++group) {
            const KvGroup& kv_group = layout_.groups[group];
            const BlockId block = index_.block(node, group);
            require(kv_group.span != KvSpan::kOpenBlock || block == kNoBlock, "an open block in the index");
            const bool is_kept = kv_group.keeps_all() && (kv_group.span == KvSpan::kAll || parent == kNoNode);
            if (!is_kept) continue;
            require(block != kNoBlock, "a node without a block of a group that keeps all positions");
            if (parent == kNoNode) continue;
            const size_t parents_turn = turn[index_.block(parent, group)];
            require(turn[block] < parents_turn || parents_turn == SIZE_MAX,
                    "a parent that is evicted before its child");
        }
    }
}

}  // namespace inlay
