#include "cache/block_pool.h"

#include <algorithm>

#include "base/error.h"

namespace inlay {

BlockPool::BlockPool(std::shared_ptr<PageProvider> provider, uint64_t budget_bytes, size_t page_bytes, bool commit_now)
    : page_bytes_(page_bytes) {
    const uint64_t n_blocks = std::min<uint64_t>(budget_bytes / page_bytes, kNoBlock - 1);
    ref_counts_.assign(n_blocks, kFree);
    free_.resize(n_blocks);
    // Descending, so that the first blocks taken are the first pages.
    for (size_t i = 0; i < n_blocks; ++i) free_[i] = static_cast<BlockId>(n_blocks - 1 - i);
    pages_ = PageRange(std::move(provider), n_blocks * page_bytes, true);
    if (n_blocks != 0) pages_.commit(0, pages_.size(), commit_now);
}

BlockId BlockPool::take() noexcept {
    if (free_.empty()) return kNoBlock;
    const BlockId block = free_.back();
    free_.pop_back();
    ref_counts_[block] = 1;
    ++n_used_;
    return block;
}

void BlockPool::add_reference(BlockId block) noexcept {
    const uint32_t count = ++ref_counts_[block];
    if (count == 1) ++n_used_;
    if (count == 2) ++n_shared_;
}

bool BlockPool::drop_reference(BlockId block) noexcept {
    const uint32_t count = --ref_counts_[block];
    if (count == 1) --n_shared_;
    if (count == 0) --n_used_;
    return count == 0;
}

void BlockPool::free(BlockId block) noexcept {
    ref_counts_[block] = kFree;
    free_.push_back(block);  // never grows: it once held all blocks
}

size_t BlockPool::table_bytes() const {
    return ref_counts_.capacity() * sizeof(uint32_t) + free_.capacity() * sizeof(BlockId);
}

void BlockPool::check_invariants() const {
    std::vector<bool> listed(n_blocks(), false);
    for (const BlockId block : free_) {
        if (block >= n_blocks() || listed[block])
            throw Error(INLAY_E_INTERNAL, "block pool: bad entry in the free list");
        listed[block] = true;
    }
    size_t n_used = 0;
    size_t n_shared = 0;
    for (BlockId block = 0; block < n_blocks(); ++block) {
        if (listed[block] != is_free(block)) throw Error(INLAY_E_INTERNAL, "block pool: a free block is not listed");
        n_used += ref_count(block) > 0;
        n_shared += ref_count(block) > 1;
    }
    if (n_used != n_used_ || n_shared != n_shared_) throw Error(INLAY_E_INTERNAL, "block pool: wrong count of blocks");
}

}  // namespace inlay
