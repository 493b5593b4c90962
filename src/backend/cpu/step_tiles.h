// The exact keys and values that a step has at hand where a cache holds its full blocks quantised: for the layer that
// is being computed, the tiles of all blocks that the step writes to, and of each sequence's first one where that stays
// exact. Rows see their own block here (docs/kv-quantisation.md).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "backend/backend.h"

namespace inlay {

class StepTiles {
public:
    // Of any step: each row in a block of its own, and the sequence's first block beside it.
    static size_t most_bytes(const StepShape& shape) {
        return size_t{2} * shape.max_rows * kBlockTokens * (shape.key_width + shape.value_width) * sizeof(float);
    }

    // Throws std::bad_alloc; what follows takes no memory.
    void reserve(size_t n_sequences) { offsets_.reserve(n_sequences); }
    void place(std::byte* memory) { memory_ = memory; }

    // The sequences of the step; those without quantised blocks take no room.
    void begin(std::span<const SequenceRows> sequences) {
        sequences_ = sequences.data();
        offsets_.clear();
        size_t offset = 0;
        for (const SequenceRows& rows : sequences) {
            offsets_.push_back(offset);
            offset += rows.layout->step_tile_bytes(rows.first_position, rows.n_rows);
        }
    }

    // Exact keys and then values of one head, of a block that the step writes to or of the first one.
    std::byte* tile(const SequenceRows& rows, uint32_t layer, size_t block, size_t kv_head) const {
        const KvLayout& layout = *rows.layout;
        const size_t first_written = rows.first_position / kBlockTokens;
        const size_t index =
            block < first_written ? 0 : block - first_written + layout.has_first_tile(rows.first_position);
        return memory_ + offsets_[static_cast<size_t>(&rows - sequences_)] + index * layout.exact_layer_bytes +
               kv_head * layout.exact_head_bytes(layer);
    }

private:
    std::byte* memory_ = nullptr;
    const SequenceRows* sequences_ = nullptr;
    std::vector<size_t> offsets_;  // [sequences]
};

}  // namespace inlay
