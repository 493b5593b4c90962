// The cached blocks in the order in which they are given up: least recently held first. A list through arrays over
// block ids, so that entering and leaving takes constant time and no memory.
#pragma once

#include <cstddef>
#include <vector>

#include "cache/block_pool.h"

namespace inlay {

class EvictionQueue {
public:
    explicit EvictionQueue(size_t n_blocks) : links_(n_blocks + 1) {
        for (BlockId i = 0; i <= n_blocks; ++i) links_[i] = {i, i};
    }

    // kNoBlock when empty.
    BlockId front() const { return n_ == 0 ? kNoBlock : links_[head()].next; }
    BlockId next(BlockId block) const { return links_[block].next == head() ? kNoBlock : links_[block].next; }
    size_t size() const { return n_; }
    bool contains(BlockId block) const { return links_[block].next != block; }

    void push_back(BlockId block) noexcept {
        const BlockId last = links_[head()].previous;
        links_[block] = {last, head()};
        links_[last].next = block;
        links_[head()].previous = block;
        ++n_;
    }

    void remove(BlockId block) noexcept {
        links_[links_[block].previous].next = links_[block].next;
        links_[links_[block].next].previous = links_[block].previous;
        links_[block] = {block, block};
        --n_;
    }

    size_t bytes() const { return links_.capacity() * sizeof(Link); }

private:
    struct Link {
        BlockId previous;
        BlockId next;  // itself: not in the queue
    };

    BlockId head() const { return static_cast<BlockId>(links_.size() - 1); }

    std::vector<Link> links_;  // [n_blocks + 1]; the last one is the head of the ring
    size_t n_ = 0;
};

}  // namespace inlay
