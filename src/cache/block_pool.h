// A fixed budget of pages, all of one size, that stay where they are for life. A block is one of them with a count of
// its holders, and in one of three states:
//   free     on the free list
//   used     held: ref_count > 0
//   cached   held by nobody but not free: its content may be found again (the prefix index knows it)
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/pages.h"

namespace inlay {

using BlockId = uint32_t;
inline constexpr BlockId kNoBlock = UINT32_MAX;

class BlockPool {
public:
    // As many blocks as the budget holds. `commit_now`: their memory is taken here, not when it is touched.
    // Throws std::bad_alloc.
    BlockPool(std::shared_ptr<PageProvider> provider, uint64_t budget_bytes, size_t page_bytes, bool commit_now);

    std::byte* page(BlockId block) const { return pages_.data() + size_t{block} * page_bytes_; }
    size_t page_bytes() const { return page_bytes_; }

    // A free block with ref_count 1; kNoBlock when there is none. Its content is whatever was there.
    BlockId take() noexcept;
    // One more holder of a used or cached block.
    void add_reference(BlockId block) noexcept;
    // One holder less. True when that was the last: the block is cached now, and the caller may free it.
    bool drop_reference(BlockId block) noexcept;
    // Cached to free.
    void free(BlockId block) noexcept;

    // Gives the memory of free blocks back; it comes again when they are written. Blocks for which it does not come
    // (a host's provider may say so) are out of the pool until the next trim.
    void trim() noexcept;

    bool is_free(BlockId block) const { return ref_counts_[block] == kFree; }
    uint32_t ref_count(BlockId block) const { return is_free(block) ? 0 : ref_counts_[block]; }

    size_t n_blocks() const { return ref_counts_.size(); }
    size_t n_free() const { return free_.size(); }
    size_t n_used() const { return n_used_; }
    size_t n_cached() const { return n_blocks() - n_free() - n_used() - lost_.size(); }
    size_t n_to_be_had() const { return n_free() + n_cached(); }
    // Held more than once.
    size_t n_shared() const { return n_shared_; }
    // Bytes of the counts and the free list.
    size_t table_bytes() const;

    // Throws Error when a count is wrong.
    void check_invariants() const;

private:
    bool renew_memory(BlockId first, size_t n) noexcept;

    static constexpr uint32_t kFree = UINT32_MAX;

    size_t page_bytes_;
    std::vector<uint32_t> ref_counts_;  // [n_blocks], kFree for those on the free list
    std::vector<BlockId> free_;         // a stack: what was used last is used first, so few pages are ever touched
    std::vector<BlockId> lost_;         // free, but without memory
    size_t n_used_ = 0;
    size_t n_shared_ = 0;
    PageRange pages_;
};

}  // namespace inlay
