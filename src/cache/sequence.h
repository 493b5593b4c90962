// The tokens and block tables of one session. Its state changes only through its cache; between two calls for it, its
// owner reads it without a lock. Only n_computed may change meanwhile, and only to less (and is_private with it): its
// blocks may be taken for another sequence, unless it is in a step.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/block_table.h"
#include "cache/prefix_index.h"

namespace inlay {

class Cache;

class Sequence {
public:
    // `extra_key`: only sequences with the same one share blocks. `keeps_blocks`: they are never taken for another
    // sequence. The cache must outlive the sequence. Throws std::bad_alloc.
    explicit Sequence(Cache& cache, uint64_t extra_key = 0, bool keeps_blocks = false);
    ~Sequence();
    Sequence(const Sequence&) = delete;
    Sequence& operator=(const Sequence&) = delete;

    uint64_t extra_key() const { return extra_key_; }
    // Holds blocks that came from outside (Cache::restore): none of its own enter the index, as those after them were
    // computed from what nobody vouches for. Ends with the last of its blocks, when it computes all anew. May end
    // between two calls for the sequence, as n_computed.
    bool is_private() const { return is_private_.load(std::memory_order_relaxed); }
    // All tokens, computed or not.
    std::span<const int32_t> tokens() const { return tokens_; }
    // Tokens whose keys and values are in blocks.
    size_t n_computed() const { return n_computed_.load(std::memory_order_relaxed); }
    // Logical blocks, prepared ones included.
    size_t n_blocks() const { return tables_[0].size(); }
    // [n_blocks()] pages of one KV group, null where a block left the window. Valid until the cache changes the
    // sequence.
    std::byte* const* pages(size_t group) const { return tables_[group].pages(); }

private:
    friend class Cache;

    Cache& cache_;
    uint64_t extra_key_;
    bool keeps_blocks_;
    std::atomic<bool> is_private_{false};
    bool is_in_turn_ = false;  // from the first request for room until end_turn
    bool waits_for_room_ = false;
    uint64_t turn_ = 0;  // number of its last turn; the youngest has the highest
    std::vector<int32_t> tokens_;
    std::atomic<size_t> n_computed_{0};
    size_t prepared_end_ = 0;         // positions from n_computed_ to here may be written and committed: a step is on
    size_t promised_end_ = 0;         // tokens up to here find their blocks when they come; 0: nothing is promised
    uint64_t n_promised_blocks_ = 0;  // that this may still take
    NodePlace last_node_ = kNoNode;   // of the last full block; this sequence is one of its holders
    std::vector<BlockTable> tables_;  // [n_groups], equally long
    Sequence* previous_ = nullptr;    // the cache's list of its sequences
    Sequence* next_ = nullptr;
};

}  // namespace inlay
