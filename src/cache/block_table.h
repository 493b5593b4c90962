// A sequence's blocks in one KV group: logical block -> physical block, or none where the group does not hold it (any
// more). The page addresses lie beside the ids, contiguous, as the attention kernels read them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "cache/block_pool.h"

namespace inlay {

class BlockTable {
public:
    size_t size() const { return blocks_.size(); }
    BlockId block(size_t index) const { return blocks_[index]; }
    std::byte* const* pages() const { return pages_.data(); }  // [size()], null where there is no block
    // All logical blocks below are none.
    size_t first() const { return first_; }
    size_t n_held() const { return n_held_; }

    // Room for `n` blocks, so that extend does not allocate. Throws std::bad_alloc; changes nothing visible.
    void reserve(size_t n) {
        if (n > blocks_.capacity()) blocks_.reserve(std::max(n, blocks_.capacity() * 3 / 2));
        if (n > pages_.capacity()) pages_.reserve(std::max(n, pages_.capacity() * 3 / 2));
    }

    // Grows to `n` entries by nones; room must have been reserved.
    void extend(size_t n) noexcept {
        if (first_ == size()) first_ = n;
        blocks_.resize(n, kNoBlock);
        pages_.resize(n, nullptr);
    }

    void set(size_t index, BlockId block, std::byte* page) noexcept {
        n_held_ += blocks_[index] == kNoBlock;
        blocks_[index] = block;
        pages_[index] = page;
        first_ = std::min(first_, index);
    }

    void remove(size_t index) noexcept {
        n_held_ -= blocks_[index] != kNoBlock;
        blocks_[index] = kNoBlock;
        pages_[index] = nullptr;
        while (first_ < size() && blocks_[first_] == kNoBlock) ++first_;
    }

    // To `n` entries; those beyond are none.
    void shrink(size_t n) noexcept {
        blocks_.resize(n);
        pages_.resize(n);
        first_ = std::min(first_, n);
    }

    size_t bytes() const { return blocks_.capacity() * sizeof(BlockId) + pages_.capacity() * sizeof(std::byte*); }

private:
    std::vector<BlockId> blocks_;
    std::vector<std::byte*> pages_;
    size_t first_ = 0;
    size_t n_held_ = 0;
};

}  // namespace inlay
