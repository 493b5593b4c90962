// Keys and values of many sequences in a fixed budget of blocks.
//
// A sequence takes blocks as it grows. A block that became full is put into the prefix index, where other sequences
// with the same beginning find it instead of computing it; a block that no sequence holds any more stays findable until
// its room is needed. A block that is shared or indexed is never written: whoever would write it copies it first.
//
// The invariants that carry this (check_invariants):
// - A block is free, held by as many as its ref_count says, or cached: indexed, unheld and in the eviction queue.
// - A sequence's full block is the one of its node, or none where it left the window; a private one's is in no node.
// - With groups that keep all positions, a node lives as long as its blocks of these groups, and whoever holds a node's
//   block there holds its ancestors' too. Sequences let go from the tail, so the queue has every child before its
//   parent.
// - Where keys or values are quantised, the block that is not full is in the groups of open blocks alone, and in no
//   node. A step takes the quantised block when it fills it. Whoever goes back into a full block computes it anew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "backend/kv_layout.h"
#include "cache/block_pool.h"
#include "cache/eviction_queue.h"
#include "cache/prefix_index.h"
#include "cache/sequence.h"

namespace inlay {

// What becomes of a sequence that finds no room.
enum class WhenFull : uint8_t {
    kFail,
    kWait,    // until others give their blocks back
    kPreempt  // others lose theirs: those without a turn first, then the youngest; or it waits, being the youngest
};

struct CacheOptions {
    uint64_t budget_bytes = 0;
    bool no_reuse = false;    // sequences share nothing
    bool commit_now = false;  // memory is taken at creation
    WhenFull when_full = WhenFull::kFail;
    uint64_t max_step_tokens = 512;  // most tokens of one prepare, as far as promises look ahead
    PrefixHash prefix_hash = &hash_prefix;
};

struct CacheStats {
    uint64_t budget_bytes = 0;
    uint64_t block_bytes = 0;
    uint64_t n_blocks = 0;
    uint64_t n_used_blocks = 0;
    uint64_t n_cached_blocks = 0;
    uint64_t n_free_blocks = 0;
    uint64_t n_shared_blocks = 0;
    uint64_t used_bytes = 0;
    uint64_t table_bytes = 0;
    uint64_t n_prefix_hits = 0;
    uint64_t n_reused_tokens = 0;
    uint64_t n_evicted_blocks = 0;
    uint64_t n_promised_blocks = 0;
    uint64_t n_preemptions = 0;
};

// Blocks that a sequence needs for its next step and what it is to be promised, and those it could get. True when there
// are enough.
struct BlockNeed {
    uint64_t n_needed = 0;
    uint64_t n_available = 0;  // free, or cached and so to be had, and promised to nobody else
    bool may_come = false;     // not now, but it is worth waiting
    explicit operator bool() const { return n_needed <= n_available; }
};

// What is asked for beside the step itself.
struct RoomTerms {
    size_t promised_end = 0;  // all tokens up to here shall find their blocks, whoever comes meanwhile
    bool is_stalled = false;  // nobody has run for a while: sequences that wait yield to older ones
};

// Keys and values of a sequence's first tokens, as they lie in a cache of the same layout.
struct RestoredPages {
    size_t n_computed = 0;
    // [n_groups] the first block that is there, inside the window or just before it.
    std::span<const size_t> first_blocks;
    // [blocks, page_bytes] from there to the group's last one of n_computed tokens, group by group.
    const std::byte* pages = nullptr;
};

// A prefix of whole blocks, for a sequence that is to hold it.
struct RestoredPrefix {
    Sequence& sequence;  // empty
    std::span<const int32_t> tokens;
    // [n_groups, blocks] null where it is not needed to go on after the prefix. What two prefixes share has one page.
    std::span<const std::byte* const> pages;
};

// Every public function takes the cache's mutex: any thread, one at a time for each sequence. A function that throws
// std::bad_alloc has changed nothing; functions marked noexcept do not allocate.
class Cache {
public:
    // Throws Error when the budget does not hold one block of every group, std::bad_alloc.
    Cache(KvLayout layout, std::shared_ptr<PageProvider> provider, const CacheOptions& options);
    Cache(const Cache&) = delete;
    Cache& operator=(const Cache&) = delete;

    const KvLayout& layout() const { return layout_; }
    // Whether sequences share what they computed at all.
    bool reuses() const { return !no_reuse_; }
    size_t n_blocks() const { return pool_.n_blocks(); }

    // Tokens to be computed.
    void append(Sequence& sequence, std::span<const int32_t> tokens);

    // Takes over what is cached of the tokens to be computed, by whole blocks and never the last token, whose logits
    // are wanted. Returns how many tokens need not be computed. A prepared range is given up if there are any. Takes
    // nothing that was promised to others.
    size_t adopt_prefix(Sequence& sequence);
    // As before adopt_prefix, which has just returned `n_tokens`.
    void undo_adoption(Sequence& sequence, size_t n_tokens) noexcept;

    // Whether adopt_prefix will give `waiting` its next block once the next `n_tokens` tokens of `computing` are
    // committed.
    bool brings_next_block(const Sequence& computing, size_t n_tokens, const Sequence& waiting) const;

    // Makes `sequence`, which is empty, one with these tokens whose first ones were computed elsewhere, and copies
    // their pages into blocks of its own: once everything is counted, as in prepare, as the youngest that asks. Never
    // waits; changes nothing when there is not enough. `may_share`: full blocks enter the index as if they had been
    // computed here; otherwise they stay the sequence's and its forks' (Sequence::is_private).
    BlockNeed restore(Sequence& sequence, std::span<const int32_t> tokens, const RestoredPages& pages, bool may_share);

    // Makes each sequence hold its prefix, whose blocks are taken over where the index has them and otherwise copied
    // into the index: all of them, once everything is counted, or none. Takes free and cached blocks that were promised
    // to nobody, and never waits. Not for a cache that shares nothing.
    BlockNeed restore_prefixes(std::span<const RestoredPrefix> prefixes);

    // Makes `child`, which is empty and has the parent's extra key, the parent's first `n_tokens` tokens, sharing all
    // blocks that it still has of them: whoever writes into a shared partial block copies it first. A
    // prepared range of the parent is given up. Throws std::bad_alloc; both are then as before.
    void fork(Sequence& parent, Sequence& child, size_t n_tokens);

    // Makes the next `n_tokens` tokens' positions writable: takes blocks, evicting cached ones where needed, and copies
    // a partial block that others see. Promises the blocks up to terms.promised_end, until end_turn or release; with a
    // fork, or once others share what would have left its windows, it may take more than that. Where there is not
    // enough, other sequences may lose their blocks (WhenFull). All is counted first: changes nothing when it is not
    // enough even then. Where blocks are quantised, a prepared range must be committed or abandoned before the next.
    BlockNeed prepare(Sequence& sequence, size_t n_tokens, const RoomTerms& terms = {});
    // The step for which the sequence was prepared does not come.
    void abandon_step(Sequence& sequence) noexcept;
    // The sequence asks for no more for now: its promise ends.
    void end_turn(Sequence& sequence) noexcept;
    // Whether the sequence was given room in this turn, and still has it.
    bool has_room(const Sequence& sequence) const;

    // A step has computed the next `n_tokens` tokens, which were prepared. Blocks that became full are indexed, or
    // dropped for the equal block that is indexed already; blocks that left their window are let go. Where blocks are
    // quantised, what was prepared beyond is given up, and with it the beginning of a block that the step filled.
    void commit(Sequence& sequence, size_t n_tokens);

    // Cuts the sequence to `n_tokens` tokens and gives the blocks beyond back. Never computes: tokens that are left
    // but whose keys and values are gone (below a window) are to be computed again.
    void truncate(Sequence& sequence, size_t n_tokens) noexcept;

    // The tokens from `n_computed` on (or from before it, as in truncate) are to be computed again.
    void forget_from(Sequence& sequence, size_t n_computed) noexcept;

    // Gives all blocks back; the tokens stay and are to be computed again.
    void release(Sequence& sequence) noexcept;

    // Gives up all cached blocks.
    void clear() noexcept;
    // Gives up all cached blocks and the memory of all free ones, which comes back when they are used.
    void trim() noexcept;

    CacheStats stats() const;

    // For tests: throws Error when an invariant does not hold.
    void check_invariants() const;

private:
    friend class Sequence;

    struct TopBlock {
        size_t n_copies = 0;  // blocks to be copied before they are written
        size_t n_sole = 0;    // of them, those that are only indexed: they could leave the index instead
    };

    struct KeptBlocks {
        uint64_t n_in_all = 0;
        uint64_t n_for_each = 0;  // of them, for each sequence that has room, beside what it was promised
    };

    void enter(Sequence& sequence) noexcept;
    void leave(Sequence& sequence) noexcept;

    // Nodes that commits of a prepared range may need.
    static size_t promised_nodes(size_t n_computed, size_t prepared_end) {
        return prepared_end / kBlockTokens - n_computed / kBlockTokens;
    }

    size_t n_groups() const { return layout_.groups.size(); }
    // Whether the sequence's blocks enter the index, and it takes over those of others.
    bool shares(const Sequence& sequence) const { return !no_reuse_ && !sequence.is_private(); }
    // Length of the path that ends in the sequence's last node.
    size_t path_length(const Sequence& sequence) const;
    bool is_writable(BlockId block) const;
    TopBlock top_block(const Sequence& sequence, size_t end) const;
    bool is_rewritten(const Sequence& sequence, size_t group, size_t end) const;
    size_t movable_open_block(const Sequence& sequence, size_t group) const;

    uint64_t n_taken_by(const Sequence& sequence, size_t group, size_t end) const;
    uint64_t blocks_to_come(const Sequence& sequence, size_t group, size_t end) const;
    uint64_t total_need(const Sequence& sequence, size_t end, size_t promised_end) const;
    KeptBlocks kept_from(const Sequence& asking, bool is_stalled) const;
    uint64_t available_beside(uint64_t n_kept) const;
    bool could_ever_fit(const Sequence& sequence, size_t end, uint64_t n_needed) const;
    void set_promise(Sequence& sequence, size_t end) noexcept;
    std::byte* take_block(BlockTable& table, size_t index) noexcept;
    void take_blocks(Sequence& sequence, size_t end) noexcept;
    void take_open_block(Sequence& sequence, size_t group, size_t index) noexcept;
    void take_pages(Sequence& sequence, const RestoredPages& restored) noexcept;

    BlockNeed need_of(std::span<const RestoredPrefix> prefixes) const;
    void hold_indexed(const RestoredPrefix& prefix) noexcept;
    void restore_prefix(const RestoredPrefix& prefix) noexcept;

    bool may_yield(const Sequence& victim, const Sequence& asking) const;
    std::vector<Sequence*> victims_for(const Sequence& asking, uint64_t n_needed, bool is_stalled) const;
    void preempt(Sequence& victim) noexcept;

    size_t usable_prefix(const Sequence& sequence, NodePlace node, size_t length, size_t n_tokens) const noexcept;
    void settle(Sequence& sequence, NodePlace node, size_t length, size_t n_computed) noexcept;
    void take_from_path(Sequence& sequence, NodePlace node, size_t length, size_t n_computed) noexcept;
    NodePlace ancestor(NodePlace node, size_t length, size_t wanted_length) const noexcept;
    void rewind(Sequence& sequence, size_t n_computed) noexcept;

    void index_block(Sequence& sequence, size_t block) noexcept;
    void make_top_block_writable(Sequence& sequence, size_t end) noexcept;
    void take_sole_blocks_out(Sequence& sequence) noexcept;
    void give_back_all(Sequence& sequence) noexcept;
    void give_back_beyond(Sequence& sequence, size_t n_tokens) noexcept;
    void leave_windows(Sequence& sequence) noexcept;
    void set_progress(Sequence& sequence, size_t n_computed, size_t prepared_end) noexcept;

    void acquire(BlockId block) noexcept;
    void let_go(BlockId block) noexcept;
    void evict_oldest() noexcept;
    void evict_all() noexcept;

    bool may_hold(const Sequence& sequence, const KvGroup& group, size_t index) const;
    bool must_hold(const Sequence& sequence, const KvGroup& group, size_t index) const;
    void check_sequence(const Sequence& sequence) const;
    void check_blocks() const;
    void check_nodes() const;

    const KvLayout layout_;
    const bool no_reuse_;
    const WhenFull when_full_;
    const uint64_t max_step_tokens_;
    const uint64_t budget_bytes_;
    mutable std::mutex mutex_;
    BlockPool pool_;
    PrefixIndex index_;
    EvictionQueue queue_;
    Sequence* sequences_ = nullptr;  // all of this cache
    size_t n_promised_nodes_ = 0;  // that prepared ranges may need: the index has room for them, so commit never fails
    uint64_t n_prefix_hits_ = 0;
    uint64_t n_reused_tokens_ = 0;
    uint64_t n_evicted_blocks_ = 0;
    uint64_t n_promised_blocks_ = 0;  // to all sequences together
    size_t n_with_room_ = 0;          // sequences that were given room in their turn
    uint64_t n_turns_ = 0;
    uint64_t n_preemptions_ = 0;
};

}  // namespace inlay
