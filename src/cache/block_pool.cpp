#include "cache/block_pool.h"

#include <algorithm>
#include <functional>

#include "base/error.h"

namespace inlay {

BlockPool::BlockPool(std::shared_ptr<PageProvider> provider, uint64_t budget_bytes, size_t page_bytes, bool commit_now)
    : page_bytes_(page_bytes) {
    const uint64_t n_blocks = std::min<uint64_t>(budget_bytes / page_bytes, kNoBlock - 1);
    ref_counts_.assign(n_blocks, kFree);
    free_.resize(n_blocks);
    lost_.reserve(n_blocks);
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

// By runs of neighbours, in the descending order that the list had at first.
void BlockPool::trim() noexcept {
    std::vector<BlockId>& blocks = free_;
    blocks.insert(blocks.end(), lost_.begin(), lost_.end());
    lost_.clear();
    std::sort(blocks.begin(), blocks.end(), std::greater<>());
    size_t n_kept = 0;
    for (size_t begin = 0, end = 0; begin < blocks.size(); begin = end) {
        for (end = begin + 1; end < blocks.size() && blocks[end] + 1 == blocks[end - 1];) ++end;
        const bool is_usable = renew_memory(blocks[end - 1], end - begin);
        for (size_t i = begin; i < end; ++i) {
            if (is_usable)
                blocks[n_kept++] = blocks[i];
            else
                lost_.push_back(blocks[i]);
        }
    }
    blocks.resize(n_kept);
}

bool BlockPool::renew_memory(BlockId first, size_t n) noexcept {
    const size_t offset = size_t{first} * page_bytes_;
    pages_.decommit(offset, n * page_bytes_);
    try {
        pages_.commit(offset, n * page_bytes_, false);
        return true;
    } catch (...) {
        return false;
    }
}

size_t BlockPool::table_bytes() const {
    return ref_counts_.capacity() * sizeof(uint32_t) + (free_.capacity() + lost_.capacity()) * sizeof(BlockId);
}

void BlockPool::check_invariants() const {
    std::vector<bool> listed(n_blocks(), false);
    for (const BlockId block : free_) {
        if (block >= n_blocks() || listed[block])
            throw Error(INLAY_E_INTERNAL, "block pool: bad entry in the free list");
        listed[block] = true;
    }
    for (const BlockId block : lost_) listed[block] = true;
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
