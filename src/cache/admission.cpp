// The part of Cache that gives a sequence room: counts what it needs and what there is, keeps what was promised to
// others, and takes blocks from those that must yield.
#include <algorithm>
#include <cstring>
#include <tuple>

#include "base/error.h"
#include "cache/cache.h"

namespace inlay {

// The open block that a step may write the next open one over: what it holds is read by then. `size()` of the table:
// none.
size_t Cache::movable_open_block(const Sequence& sequence, size_t group) const {
    const BlockTable& table = sequence.tables_[group];
    for (const size_t n_tokens : {sequence.prepared_end_, sequence.n_computed()}) {
        const size_t index = n_tokens / kBlockTokens;
        if (index < table.size() && table.block(index) != kNoBlock && is_writable(table.block(index))) return index;
    }
    return table.size();
}

// Blocks of one group that a step takes after which the sequence has `end` tokens. Without copies.
uint64_t Cache::n_taken_by(const Sequence& sequence, size_t group, size_t end) const {
    const KvGroup& kv_group = layout_.groups[group];
    const BlockTable& table = sequence.tables_[group];
    if (kv_group.span != KvSpan::kOpenBlock)
        return kv_group.end_block(end) - kv_group.end_block(sequence.prepared_end_);
    const size_t index = end / kBlockTokens;
    const bool is_there = end % kBlockTokens == 0 || (index < table.size() && table.block(index) != kNoBlock);
    return is_there || movable_open_block(sequence, group) != table.size() ? 0 : 1;
}

// Blocks of one group that a sequence takes from now until it has `end` tokens, less those that it gives back on the
// way: what leaves a window, or is no longer open, and is held by nobody else.
uint64_t Cache::blocks_to_come(const Sequence& sequence, size_t group, size_t end) const {
    const KvGroup& kv_group = layout_.groups[group];
    const BlockTable& table = sequence.tables_[group];
    const size_t n_now = kv_group.end_block(sequence.prepared_end_);
    const size_t n_then = kv_group.end_block(end);
    if (n_then <= n_now) return 0;
    if (kv_group.keeps_all()) return n_then - n_now;
    uint64_t n_sole = 0;
    for (size_t i = table.first(); i < table.size(); ++i) {
        n_sole += table.block(i) != kNoBlock && pool_.ref_count(table.block(i)) == 1;
    }
    const uint64_t n_most = kv_group.most_blocks(end, max_step_tokens_);
    return std::min<uint64_t>(n_then - n_now, n_most - std::min(n_most, n_sole));
}

// For a step after which there are `end` tokens, and for what is promised beyond it. Without copies.
uint64_t Cache::total_need(const Sequence& sequence, size_t end, size_t promised_end) const {
    uint64_t n_needed = 0;
    for (size_t group = 0; group < n_groups(); ++group) {
        n_needed += std::max(n_taken_by(sequence, group, end), blocks_to_come(sequence, group, promised_end));
    }
    return n_needed;
}

// Blocks that are to be had, but not by `asking`: what others were promised. And where who comes last is the first to
// yield, it does not begin before those in their turn could go on for a block each: it would lose all it had computed
// to the first of them, again and again.
Cache::KeptBlocks Cache::kept_from(const Sequence& asking, bool is_stalled) const {
    const bool begins = when_full_ == WhenFull::kPreempt && asking.promised_end_ == 0 && !is_stalled;
    KeptBlocks kept;
    kept.n_for_each = begins ? n_groups() : 0;
    kept.n_in_all = n_promised_blocks_ - asking.n_promised_blocks_ + n_with_room_ * kept.n_for_each;
    return kept;
}

// Where `n_kept` blocks are not to be had.
uint64_t Cache::available_beside(uint64_t n_kept) const {
    const uint64_t n_to_be_had = pool_.n_to_be_had();
    return n_to_be_had - std::min(n_to_be_had, n_kept);
}

// With the pool to itself.
bool Cache::could_ever_fit(const Sequence& sequence, size_t end, uint64_t n_needed) const {
    uint64_t n_held = 0;
    for (const BlockTable& table : sequence.tables_) n_held += table.n_held();
    return std::min(n_held + n_needed, layout_.blocks_for(end, max_step_tokens_)) <= pool_.n_blocks();
}

void Cache::set_promise(Sequence& sequence, size_t end) noexcept {
    n_promised_blocks_ -= sequence.n_promised_blocks_;
    n_with_room_ += (end != 0) - (sequence.promised_end_ != 0);
    sequence.promised_end_ = end;
    sequence.n_promised_blocks_ = 0;
    if (end > sequence.n_computed_) {
        const bool is_prepared = sequence.prepared_end_ > sequence.n_computed_;
        const uint64_t n_needed =
            total_need(sequence, sequence.prepared_end_, end) + (is_prepared ? 0 : top_block(sequence, end).n_copies);
        // A fork may make it more than there is: then this sequence goes short, and nobody to whom room was promised.
        sequence.n_promised_blocks_ = std::min(n_needed, available_beside(n_promised_blocks_));
    }
    n_promised_blocks_ += sequence.n_promised_blocks_;
}

BlockNeed Cache::prepare(Sequence& sequence, size_t n_tokens, const RoomTerms& terms) {
    const std::lock_guard lock(mutex_);
    const size_t n_computed = sequence.n_computed_;
    if (n_tokens > sequence.tokens_.size() - n_computed) {
        throw Error(INLAY_E_INTERNAL, "cache: prepare for tokens that the sequence does not have");
    }
    if (layout_.is_quantized() && sequence.prepared_end_ > n_computed) {
        throw Error(INLAY_E_INTERNAL, "cache: prepare of a sequence that is in a step");
    }
    if (!sequence.is_in_turn_) sequence.turn_ = ++n_turns_;
    sequence.is_in_turn_ = true;

    const size_t end = std::max(n_computed + n_tokens, sequence.prepared_end_);
    const size_t new_size = std::max(blocks_of(end), sequence.n_blocks());
    const TopBlock top = n_tokens == 0 ? TopBlock{} : top_block(sequence, end);
    BlockNeed need{total_need(sequence, end, terms.promised_end) + top.n_copies,
                   available_beside(kept_from(sequence, terms.is_stalled).n_in_all)};
    // A sequence that just fits must be able to go on after it was cut back: without room for a copy, its own block is
    // taken out of the index. Only then, because that costs the block's findability.
    const bool without_copies = !need && top.n_sole > 0 && need.n_needed - top.n_sole <= need.n_available;
    if (without_copies) need.n_needed -= top.n_sole;
    std::vector<Sequence*> victims;
    if (!need) {
        victims = victims_for(sequence, need.n_needed, terms.is_stalled);
        if (victims.empty()) {
            need.may_come = when_full_ != WhenFull::kFail &&
                            could_ever_fit(sequence, std::max(end, terms.promised_end), need.n_needed);
            sequence.waits_for_room_ = need.may_come;
            return need;
        }
    }

    for (BlockTable& table : sequence.tables_) table.reserve(new_size);
    if (!no_reuse_) {
        index_.reserve(index_.n_nodes() + n_promised_nodes_ - promised_nodes(n_computed, sequence.prepared_end_) +
                       promised_nodes(n_computed, end));
    }

    for (Sequence* victim : victims) preempt(*victim);
    if (without_copies) take_sole_blocks_out(sequence);
    const uint64_t n_taken = total_need(sequence, end, 0) + top.n_copies;
    while (pool_.n_free() < n_taken - (without_copies ? top.n_sole : 0)) evict_oldest();
    if (n_tokens != 0) make_top_block_writable(sequence, end);
    take_blocks(sequence, end);
    set_progress(sequence, n_computed, end);
    set_promise(sequence, std::max(end, terms.promised_end));
    sequence.waits_for_room_ = false;
    return {need.n_needed, std::max(need.n_needed, need.n_available)};
}

// A free block, which must be there, at that place of the table. Returns its page.
std::byte* Cache::take_block(BlockTable& table, size_t index) noexcept {
    const BlockId block = pool_.take();
    table.set(index, block, pool_.page(block));
    return pool_.page(block);
}

void Cache::take_blocks(Sequence& sequence, size_t end) noexcept {
    const size_t new_size = std::max(blocks_of(end), sequence.n_blocks());
    for (size_t group = 0; group < n_groups(); ++group) {
        const KvGroup& kv_group = layout_.groups[group];
        BlockTable& table = sequence.tables_[group];
        table.extend(new_size);
        if (kv_group.span == KvSpan::kOpenBlock) {
            if (end % kBlockTokens != 0) take_open_block(sequence, group, end / kBlockTokens);
            continue;
        }
        for (size_t i = kv_group.end_block(sequence.prepared_end_); i < kv_group.end_block(end); ++i) {
            take_block(table, i);
        }
    }
}

// A step that goes on into another block writes its tokens where those of the open block before lay, which it has read
// by then. So these are lost if the step does not come to its end.
void Cache::take_open_block(Sequence& sequence, size_t group, size_t index) noexcept {
    BlockTable& table = sequence.tables_[group];
    if (table.block(index) != kNoBlock) return;
    const size_t movable = movable_open_block(sequence, group);
    if (movable == table.size()) {
        take_block(table, index);
        return;
    }
    const BlockId block = table.block(movable);
    table.remove(movable);
    table.set(index, block, pool_.page(block));
}

BlockNeed Cache::restore(Sequence& sequence, std::span<const int32_t> tokens, const RestoredPages& restored,
                         bool may_share) {
    const std::lock_guard lock(mutex_);
    if (!sequence.tokens_.empty()) throw Error(INLAY_E_INTERNAL, "cache: restore of a sequence that has tokens");
    const size_t n_blocks = blocks_of(restored.n_computed);
    sequence.turn_ = ++n_turns_;
    BlockNeed need{0, available_beside(kept_from(sequence, false).n_in_all)};
    for (size_t group = 0; group < n_groups(); ++group) {
        need.n_needed += layout_.groups[group].end_block(restored.n_computed) - restored.first_blocks[group];
    }
    std::vector<Sequence*> victims;
    if (!need) victims = victims_for(sequence, need.n_needed, false);
    if (!need && victims.empty()) return need;

    std::vector<int32_t> own_tokens(tokens.begin(), tokens.end());
    for (BlockTable& table : sequence.tables_) table.reserve(n_blocks);
    if (may_share && !no_reuse_) {
        index_.reserve(index_.n_nodes() + n_promised_nodes_ + restored.n_computed / kBlockTokens);
    }

    for (Sequence* victim : victims) preempt(*victim);
    while (pool_.n_free() < need.n_needed) evict_oldest();
    sequence.tokens_.swap(own_tokens);
    sequence.is_private_ = !may_share && restored.n_computed != 0;
    take_pages(sequence, restored);
    set_progress(sequence, restored.n_computed, restored.n_computed);
    for (size_t i = 0; i < path_length(sequence); ++i) index_block(sequence, i);
    return {need.n_needed, std::max(need.n_needed, need.n_available)};
}

void Cache::take_pages(Sequence& sequence, const RestoredPages& restored) noexcept {
    const size_t n_blocks = blocks_of(restored.n_computed);
    const std::byte* page = restored.pages;
    for (size_t group = 0; group < n_groups(); ++group) {
        BlockTable& table = sequence.tables_[group];
        table.extend(n_blocks);
        const size_t end = layout_.groups[group].end_block(restored.n_computed);
        for (size_t i = restored.first_blocks[group]; i < end; ++i, page += layout_.page_bytes) {
            std::memcpy(take_block(table, i), page, layout_.page_bytes);
        }
    }
}

void Cache::abandon_step(Sequence& sequence) noexcept {
    const std::lock_guard lock(mutex_);
    rewind(sequence, sequence.n_computed_);
}

void Cache::end_turn(Sequence& sequence) noexcept {
    const std::lock_guard lock(mutex_);
    set_promise(sequence, 0);
    sequence.is_in_turn_ = false;
    sequence.waits_for_room_ = false;
}

bool Cache::has_room(const Sequence& sequence) const {
    const std::lock_guard lock(mutex_);
    return sequence.promised_end_ != 0;
}

// When blocks are taken from others at all (victims_for).
bool Cache::may_yield(const Sequence& victim, const Sequence& asking) const {
    const bool is_in_step = victim.prepared_end_ > victim.n_computed_;
    if (&victim == &asking || victim.keeps_blocks_ || victim.n_blocks() == 0 || is_in_step) return false;
    const bool is_younger = victim.turn_ > asking.turn_;
    if (when_full_ == WhenFull::kWait) return victim.waits_for_room_ && is_younger;
    return !victim.is_in_turn_ || is_younger;
}

// The sequences that must yield so that `asking` finds `n_needed` blocks: those without a turn first, by how long ago
// they had one, then the youngest. None when all together are not enough.
std::vector<Sequence*> Cache::victims_for(const Sequence& asking, uint64_t n_needed, bool is_stalled) const {
    std::vector<Sequence*> victims;
    if (when_full_ == WhenFull::kFail || (when_full_ == WhenFull::kWait && !is_stalled)) return victims;
    for (Sequence* each = sequences_; each; each = each->next_) {
        if (may_yield(*each, asking)) victims.push_back(each);
    }
    std::sort(victims.begin(), victims.end(), [](const Sequence* a, const Sequence* b) {
        const auto rank = [](const Sequence& each) {
            return std::tuple(each.is_in_turn_, each.is_in_turn_ ? UINT64_MAX - each.turn_ : each.turn_);
        };
        return rank(*a) < rank(*b);
    });

    std::vector<uint32_t> n_dropped(victims.empty() ? 0 : pool_.n_blocks(), 0);  // references, by block
    KeptBlocks kept = kept_from(asking, is_stalled);
    uint64_t n_to_be_had = pool_.n_to_be_had();
    for (size_t n = 0; n < victims.size(); ++n) {
        const Sequence& victim = *victims[n];
        kept.n_in_all -= victim.n_promised_blocks_ + (victim.promised_end_ != 0 ? kept.n_for_each : 0);
        for (const BlockTable& table : victim.tables_) {
            for (size_t i = table.first(); i < table.size(); ++i) {
                const BlockId block = table.block(i);
                if (block == kNoBlock) continue;
                n_to_be_had += ++n_dropped[block] == pool_.ref_count(block);
            }
        }
        if (n_needed + kept.n_in_all > n_to_be_had) continue;
        victims.resize(n + 1);
        return victims;
    }
    victims.clear();
    return victims;
}

void Cache::preempt(Sequence& victim) noexcept {
    give_back_all(victim);
    ++n_preemptions_;
}

// Whether a step that ends at `end` writes into a block that it finds partly filled and others see.
bool Cache::is_rewritten(const Sequence& sequence, size_t group, size_t end) const {
    const size_t n_computed = sequence.n_computed_;
    if (n_computed % kBlockTokens == 0) return false;
    const BlockId block = sequence.tables_[group].block(n_computed / kBlockTokens);
    const bool is_left =
        layout_.groups[group].span == KvSpan::kOpenBlock && end / kBlockTokens > n_computed / kBlockTokens;
    return block != kNoBlock && !is_left && !is_writable(block);
}

// Counts what a step writes into first: with a partial block, positions of it that were computed must stay as they are
// for everybody else.
Cache::TopBlock Cache::top_block(const Sequence& sequence, size_t end) const {
    TopBlock top;
    for (size_t group = 0; group < n_groups(); ++group) {
        if (!is_rewritten(sequence, group, end)) continue;
        ++top.n_copies;
        top.n_sole += pool_.ref_count(sequence.tables_[group].block(sequence.n_computed_ / kBlockTokens)) == 1;
    }
    return top;
}

void Cache::make_top_block_writable(Sequence& sequence, size_t end) noexcept {
    const size_t index = sequence.n_computed_ / kBlockTokens;
    for (size_t group = 0; group < n_groups(); ++group) {
        if (!is_rewritten(sequence, group, end)) continue;
        BlockTable& table = sequence.tables_[group];
        const BlockId shared = table.block(index);
        std::memcpy(take_block(table, index), pool_.page(shared), layout_.page_bytes);
        let_go(shared);
    }
}

// Nobody else holds these blocks, so nobody holds a descendant of their node: with the cached blocks gone too it is a
// leaf, and its blocks can leave the index.
void Cache::take_sole_blocks_out(Sequence& sequence) noexcept {
    evict_all();
    for (const BlockTable& table : sequence.tables_) {
        const BlockId block = table.block(sequence.n_computed_ / kBlockTokens);
        if (block == kNoBlock || is_writable(block) || pool_.ref_count(block) != 1) continue;
        const NodePlace node = index_.node_of(block);
        index_.detach(block);
        index_.prune(node);
    }
}

}  // namespace inlay
