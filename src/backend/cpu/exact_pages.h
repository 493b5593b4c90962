// The pages in which a cache with quantised keys or values keeps the exact form of a block: for all layers together one
// array of tiles, cut into pages as it comes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "backend/backend.h"

namespace inlay {

inline size_t end_position(const SequenceRows& rows) {
    return size_t{rows.first_position} + rows.n_rows;
}

class ExactPages {
public:
    // Of the sequence's first block.
    static ExactPages first_block(const SequenceRows& rows) { return {rows, rows.layout->first_page_group(), 0}; }
    // Of the block that is not full after the step.
    static ExactPages open_after(const SequenceRows& rows) {
        return {rows, rows.layout->open_page_group(), end_position(rows) / kBlockTokens};
    }
    // Of the block that is not full before it. Its pages may be those of the one after it already.
    static ExactPages open_before(const SequenceRows& rows) {
        const ExactPages before = {rows, rows.layout->open_page_group(), rows.first_position / kBlockTokens};
        return before.page(0) ? before : open_after(rows);
    }

    // The tiles of one head, keys and then values.
    void read(uint32_t layer, size_t kv_head, std::byte* tile) const {
        for_each_piece(layer, kv_head,
                       [&](const std::byte* piece, size_t done, size_t n) { std::memcpy(tile + done, piece, n); });
    }
    void write(uint32_t layer, size_t kv_head, const std::byte* tile) const {
        for_each_piece(layer, kv_head,
                       [&](std::byte* piece, size_t done, size_t n) { std::memcpy(piece, tile + done, n); });
    }

private:
    ExactPages(const SequenceRows& rows, size_t first_group, size_t block)
        : rows_(rows), first_group_(first_group), block_(block) {}

    std::byte* page(size_t index) const { return rows_.pages[first_group_ + index][block_]; }

    // Calls copy(where the piece lies, bytes of the tile before it, its bytes).
    template <typename Copy>
    void for_each_piece(uint32_t layer, size_t kv_head, const Copy& copy) const {
        const KvLayout& layout = *rows_.layout;
        const size_t offset = layout.exact_offset(layer, kv_head);
        const size_t n_bytes = layout.exact_head_bytes(layer);
        for (size_t done = 0; done < n_bytes;) {
            const size_t in_page = (offset + done) % layout.page_bytes;
            const size_t n = std::min(n_bytes - done, layout.page_bytes - in_page);
            copy(page((offset + done) / layout.page_bytes) + in_page, done, n);
            done += n;
        }
    }

    const SequenceRows& rows_;
    size_t first_group_;
    size_t block_;
};

}  // namespace inlay
