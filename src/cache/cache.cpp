#include "cache/cache.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"

namespace inlay {
namespace {

uint64_t checked_budget(const KvLayout& layout, uint64_t budget_bytes) {
    const uint64_t least = layout.least_bytes();
    if (budget_bytes >= least) return budget_bytes;
    throw Error(INLAY_E_INVALID_ARGUMENT, "options->bytes is " + std::to_string(budget_bytes) +
                                              ", too small: 16 tokens of this model take " + std::to_string(least));
}

}  // namespace

Cache::Cache(KvLayout layout, std::shared_ptr<PageProvider> provider, const CacheOptions& options)
    : layout_(std::move(layout)),
      no_reuse_(options.no_reuse),
      when_full_(options.when_full),
      max_step_tokens_(options.max_step_tokens),
      budget_bytes_(checked_budget(layout_, options.budget_bytes)),
      pool_(std::move(provider), options.budget_bytes, layout_.page_bytes, options.commit_now),
      index_(layout_.groups.size(), pool_.n_blocks(), options.prefix_hash),
      queue_(pool_.n_blocks()) {}

void Cache::enter(Sequence& sequence) noexcept {
    const std::lock_guard lock(mutex_);
    sequence.next_ = sequences_;
    if (sequences_) sequences_->previous_ = &sequence;
    sequences_ = &sequence;
}

void Cache::leave(Sequence& sequence) noexcept {
    const std::lock_guard lock(mutex_);
    give_back_all(sequence);
    (sequence.previous_ ? sequence.previous_->next_ : sequences_) = sequence.next_;
    if (sequence.next_) sequence.next_->previous_ = sequence.previous_;
}

void Cache::append(Sequence& sequence, std::span<const int32_t> tokens) {
    const std::lock_guard lock(mutex_);
    sequence.tokens_.insert(sequence.tokens_.end(), tokens.begin(), tokens.end());
}

size_t Cache::adopt_prefix(Sequence& sequence) {
    const std::lock_guard lock(mutex_);
    if (!shares(sequence) || sequence.tokens_.empty()) return 0;

    const std::span<const int32_t> tokens = sequence.tokens_;
    const size_t longest = (tokens.size() - 1) / kBlockTokens;
    const size_t old_length = path_length(sequence);
    size_t length = old_length;
    NodePlace node = sequence.last_node_;
    for (; length < longest; ++length) {
        const NodePlace child = index_.find(node, sequence.extra_key_, tokens_of_block(tokens, length));
        if (child == kNoNode) break;
        node = child;
    }
    const size_t n_before = sequence.n_computed_;
    const size_t n_usable = usable_prefix(sequence, node, length, length * kBlockTokens);
    if (n_usable <= n_before) return 0;

    for (BlockTable& table : sequence.tables_) table.reserve(blocks_of(n_usable));
    give_back_beyond(sequence, old_length * kBlockTokens);
    settle(sequence, node, length, n_usable);
    if (pool_.n_to_be_had() < n_promised_blocks_ - sequence.n_promised_blocks_) {
        rewind(sequence, n_before);
        return 0;
    }
    ++n_prefix_hits_;
    n_reused_tokens_ += n_usable - n_before;
    return n_usable - n_before;
}

void Cache::undo_adoption(Sequence& sequence, size_t n_tokens) noexcept {
    if (n_tokens == 0) return;
    const std::lock_guard lock(mutex_);
    rewind(sequence, sequence.n_computed_ - n_tokens);
    --n_prefix_hits_;
    n_reused_tokens_ -= n_tokens;
}

bool Cache::brings_next_block(const Sequence& computing, size_t n_tokens, const Sequence& waiting) const {
    const std::lock_guard lock(mutex_);
    const size_t index = path_length(waiting);
    if (!shares(computing) || !shares(waiting) || computing.extra_key_ != waiting.extra_key_ ||
        computing.last_node_ != waiting.last_node_ || path_length(computing) != index)
        return false;
    const size_t end = (index + 1) * kBlockTokens;
    if (computing.n_computed_ + n_tokens < end || waiting.tokens_.size() <= end) return false;
    return std::ranges::equal(tokens_of_block(waiting.tokens_, index), tokens_of_block(computing.tokens_, index));
}

void Cache::commit(Sequence& sequence, size_t n_tokens) {
    const std::lock_guard lock(mutex_);
    if (n_tokens > sequence.prepared_end_ - sequence.n_computed_) {
        throw Error(INLAY_E_INTERNAL, "cache: commit of tokens that were not prepared");
    }
    const size_t n_computed = sequence.n_computed_ + n_tokens;
    if (shares(sequence)) {
        for (size_t i = sequence.n_computed_ / kBlockTokens; i < n_computed / kBlockTokens; ++i) {
            index_block(sequence, i);
        }
    }
    const size_t prepared_end = sequence.prepared_end_;
    set_progress(sequence, n_computed, prepared_end);
    leave_windows(sequence);
    set_promise(sequence, sequence.promised_end_);
    // Of a block that the step went beyond only the quantised form is left.
    if (layout_.is_quantized() && n_computed < prepared_end)
        rewind(sequence, prepared_end / kBlockTokens == n_computed / kBlockTokens
                             ? n_computed
                             : n_computed / kBlockTokens * kBlockTokens);
}

void Cache::truncate(Sequence& sequence, size_t n_tokens) noexcept {
    const std::lock_guard lock(mutex_);
    if (n_tokens >= sequence.tokens_.size()) return;
    set_promise(sequence, 0);
    rewind(sequence, n_tokens);
    sequence.tokens_.resize(n_tokens);
}

void Cache::forget_from(Sequence& sequence, size_t n_computed) noexcept {
    const std::lock_guard lock(mutex_);
    rewind(sequence, n_computed);
}

void Cache::release(Sequence& sequence) noexcept {
    const std::lock_guard lock(mutex_);
    give_back_all(sequence);
}

void Cache::clear() noexcept {
    const std::lock_guard lock(mutex_);
    evict_all();
}

void Cache::trim() noexcept {
    const std::lock_guard lock(mutex_);
    evict_all();
    pool_.trim();
}

CacheStats Cache::stats() const {
    const std::lock_guard lock(mutex_);
    CacheStats stats;
    stats.budget_bytes = budget_bytes_;
    stats.block_bytes = layout_.page_bytes;
    stats.n_blocks = pool_.n_blocks();
    stats.n_used_blocks = pool_.n_used();
    stats.n_cached_blocks = pool_.n_cached();
    stats.n_free_blocks = pool_.n_free();
    stats.n_shared_blocks = pool_.n_shared();
    stats.used_bytes = pool_.n_used() * layout_.page_bytes;
    stats.table_bytes = pool_.table_bytes() + index_.bytes() + queue_.bytes();
    for (const Sequence* sequence = sequences_; sequence; sequence = sequence->next_) {
        for (const BlockTable& table : sequence->tables_) stats.table_bytes += table.bytes();
    }
    stats.n_prefix_hits = n_prefix_hits_;
    stats.n_reused_tokens = n_reused_tokens_;
    stats.n_evicted_blocks = n_evicted_blocks_;
    stats.n_promised_blocks = n_promised_blocks_;
    stats.n_preemptions = n_preemptions_;
    return stats;
}

void Cache::index_block(Sequence& sequence, size_t index) noexcept {
    const BlockTokens tokens = tokens_of_block(sequence.tokens_, index);
    NodePlace node = index_.find(sequence.last_node_, sequence.extra_key_, tokens);
    if (node == kNoNode) node = index_.insert(sequence.last_node_, sequence.extra_key_, tokens);
    for (size_t group = 0; group < n_groups(); ++group) {
        if (layout_.groups[group].span == KvSpan::kOpenBlock) continue;
        BlockTable& table = sequence.tables_[group];
        const BlockId own = table.block(index);
        if (own == kNoBlock) continue;  // of a restored sequence: it left the window before; or not the first block
        const BlockId indexed = index_.block(node, group);
        if (indexed == kNoBlock) {
            index_.attach(node, group, own);
        } else if (indexed != own) {
            acquire(indexed);
            table.set(index, indexed, pool_.page(indexed));
            let_go(own);
        }
    }
    index_.move_holder(sequence.last_node_, node);
    sequence.last_node_ = node;
}

bool Cache::is_writable(BlockId block) const {
    return pool_.ref_count(block) == 1 && index_.node_of(block) == kNoNode;
}

void Cache::acquire(BlockId block) noexcept {
    if (pool_.ref_count(block) == 0) queue_.remove(block);
    pool_.add_reference(block);
}

void Cache::let_go(BlockId block) noexcept {
    if (!pool_.drop_reference(block)) return;
    if (index_.node_of(block) == kNoNode) {
        pool_.free(block);
    } else {
        queue_.push_back(block);
    }
}

// Gives up the oldest cached block, and with a block of a group that keeps all positions its whole node, which can not
// be found without it.
void Cache::evict_oldest() noexcept {
    const BlockId oldest = queue_.front();
    const NodePlace node = index_.node_of(oldest);
    const bool whole_node = layout_.groups[index_.group_of(oldest)].keeps_all();
    for (size_t group = 0; group < n_groups(); ++group) {
        const BlockId block = index_.block(node, group);
        if (block == kNoBlock || (block != oldest && !whole_node)) continue;
        queue_.remove(block);
        index_.detach(block);
        pool_.free(block);
        ++n_evicted_blocks_;
    }
    index_.prune(node);
}

void Cache::evict_all() noexcept {
    while (queue_.size() != 0) evict_oldest();
}

}  // namespace inlay
