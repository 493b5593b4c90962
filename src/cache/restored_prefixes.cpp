// The part of Cache that takes prefixes in which were computed elsewhere.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "cache/cache.h"

namespace inlay {
namespace {

template <typename T>
size_t n_different(std::vector<T>& values) {
    std::sort(values.begin(), values.end());
    return static_cast<size_t>(std::unique(values.begin(), values.end()) - values.begin());
}

}  // namespace

// Cached blocks that are taken over are no more to be had, as those that are copied into.
BlockNeed Cache::need_of(std::span<const RestoredPrefix> prefixes) const {
    std::vector<const std::byte*> new_pages;
    std::vector<BlockId> cached;
    for (const RestoredPrefix& prefix : prefixes) {
        const size_t n_blocks = prefix.tokens.size() / kBlockTokens;
        NodePlace node = kNoNode;
        bool is_on_path = true;
        for (size_t i = 0; i < n_blocks; ++i) {
            if (is_on_path) node = index_.find(node, prefix.sequence.extra_key_, tokens_of_block(prefix.tokens, i));
            is_on_path = is_on_path && node != kNoNode;
            for (size_t group = 0; group < n_groups(); ++group) {
                const std::byte* page = prefix.pages[group * n_blocks + i];
                if (!page) continue;
                const BlockId indexed = is_on_path ? index_.block(node, group) : kNoBlock;
                if (indexed == kNoBlock)
                    new_pages.push_back(page);
                else if (pool_.ref_count(indexed) == 0)
                    cached.push_back(indexed);
            }
        }
    }
    return {n_different(new_pages) + n_different(cached), available_beside(n_promised_blocks_)};
}

BlockNeed Cache::restore_prefixes(std::span<const RestoredPrefix> prefixes) {
    const std::lock_guard lock(mutex_);
    size_t n_blocks_in_all = 0;
    for (const RestoredPrefix& prefix : prefixes) {
        const bool fits = !no_reuse_ && prefix.sequence.tokens_.empty() &&
                          prefix.pages.size() * kBlockTokens == n_groups() * prefix.tokens.size();
        if (!fits) throw Error(INLAY_E_INTERNAL, "cache: a prefix that can not be restored");
        n_blocks_in_all += prefix.tokens.size() / kBlockTokens;
    }
    const BlockNeed need = need_of(prefixes);
    if (!need) return need;
    std::vector<std::vector<int32_t>> tokens;
    for (const RestoredPrefix& prefix : prefixes) {
        tokens.emplace_back(prefix.tokens.begin(), prefix.tokens.end());
        for (BlockTable& table : prefix.sequence.tables_) table.reserve(prefix.tokens.size() / kBlockTokens);
    }
    index_.reserve(index_.n_nodes() + n_promised_nodes_ + n_blocks_in_all);

    // What is there is held first, so that it is not evicted for what is not.
    const uint64_t n_cached_before = pool_.n_cached();
    for (const RestoredPrefix& prefix : prefixes) hold_indexed(prefix);
    const uint64_t n_new = need.n_needed - (n_cached_before - pool_.n_cached());
    while (pool_.n_free() < n_new) evict_oldest();
    for (size_t i = 0; i < prefixes.size(); ++i) {
        prefixes[i].sequence.tokens_.swap(tokens[i]);
        restore_prefix(prefixes[i]);
    }
    return need;
}

void Cache::hold_indexed(const RestoredPrefix& prefix) noexcept {
    const size_t n_blocks = prefix.tokens.size() / kBlockTokens;
    for (BlockTable& table : prefix.sequence.tables_) table.extend(n_blocks);
    NodePlace node = kNoNode;
    for (size_t i = 0; i < n_blocks; ++i) {
        node = index_.find(node, prefix.sequence.extra_key_, tokens_of_block(prefix.tokens, i));
        if (node == kNoNode) return;
        for (size_t group = 0; group < n_groups(); ++group) {
            const BlockId block = index_.block(node, group);
            if (!prefix.pages[group * n_blocks + i] || block == kNoBlock) continue;
            acquire(block);
            prefix.sequence.tables_[group].set(i, block, pool_.page(block));
        }
    }
}

void Cache::restore_prefix(const RestoredPrefix& prefix) noexcept {
    Sequence& sequence = prefix.sequence;
    const size_t n_blocks = prefix.tokens.size() / kBlockTokens;
    NodePlace node = kNoNode;
    for (size_t i = 0; i < n_blocks; ++i) {
        const BlockTokens tokens = tokens_of_block(prefix.tokens, i);
        const NodePlace parent = node;
        node = index_.find(parent, sequence.extra_key_, tokens);
        if (node == kNoNode) node = index_.insert(parent, sequence.extra_key_, tokens);
        for (size_t group = 0; group < n_groups(); ++group) {
            const std::byte* page = prefix.pages[group * n_blocks + i];
            BlockTable& table = sequence.tables_[group];
            if (!page || table.block(i) != kNoBlock) continue;
            if (const BlockId indexed = index_.block(node, group);
                indexed != kNoBlock) {  // of a prefix before this one
                acquire(indexed);
                table.set(i, indexed, pool_.page(indexed));
            } else {
                std::memcpy(take_block(table, i), page, layout_.page_bytes);
                index_.attach(node, group, table.block(i));
            }
        }
    }
    index_.move_holder(sequence.last_node_, node);
    sequence.last_node_ = node;
    set_progress(sequence, prefix.tokens.size(), prefix.tokens.size());
}

}  // namespace inlay
