// Where the intermediate results of one step lie in scratch memory. It grows with the rows of a step and, by the few
// partial attention states of long sequences, with positions / 512: nothing grows with their product.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "backend/backend.h"
#include "backend/cpu/product_input.h"
#include "kernels/kernels.h"
#include "kernels/quantized_rows.h"

namespace inlay {

inline constexpr size_t kAttentionRowsPerTask = 16;
// Steps of at most this many rows may cut attention into splits, to give every thread work.
inline constexpr size_t kMaxSplitRows = 16;

inline size_t splits_of(size_t n_positions) {
    return (n_positions + kernels::kSplitPositions - 1) / kernels::kSplitPositions;
}

struct ScratchLayout {
    static constexpr size_t kBuffers = static_cast<size_t>(Backend::Buffer::kCount);

    std::array<uint64_t, kBuffers> buffers{};  // offsets of [n_rows, width]
    std::array<size_t, kBuffers> widths{};
    uint64_t quantized = 0;
    size_t widest_input = 0;            // columns
    size_t quantized_bytes_of_row = 0;  // of the widest input, quantised twice
    uint64_t thread_inputs = 0;
    uint64_t angles = 0;
    uint64_t thread_states = 0;
    uint64_t split_states = 0;
    uint64_t tiles = 0;
    uint64_t bytes = 0;

    ScratchLayout(const StepShape& shape, const StepSize& size, unsigned n_threads) {
        const size_t n_rows = size.n_rows;
        widths = {shape.n_embedding,    shape.n_embedding,    shape.query_width,
                  shape.key_width,      shape.value_width,    shape.attention_width,
                  shape.n_feed_forward, shape.n_feed_forward, shape.n_embedding};
        for (size_t i = 0; i < kBuffers; ++i) buffers[i] = take(n_rows * widths[i] * sizeof(float));

        widest_input = std::max<size_t>({shape.n_embedding, shape.attention_width, shape.n_feed_forward});
        quantized_bytes_of_row = 2 * kernels::quantized_row_bytes(widest_input);
        quantized = take(n_rows * quantized_bytes_of_row);
        thread_inputs = take(n_threads * ThreadInputs::bytes_of_thread(widest_input));
        angles = take(n_rows * 2 * shape.n_pairs * sizeof(float));

        const size_t state_bytes = kernels::attention_state_floats(shape.value_dim) * sizeof(float);
        const size_t group_heads = shape.n_heads / shape.n_kv_heads;
        thread_states = take(n_threads * kAttentionRowsPerTask * group_heads * state_bytes);
        split_states =
            take(std::min(n_rows, kMaxSplitRows) * shape.n_heads * splits_of(size.n_positions) * state_bytes);
        tiles = take(size.tile_bytes);
    }

private:
    uint64_t take(uint64_t n_bytes) {
        const uint64_t offset = bytes;
        bytes += (n_bytes + 63) / 64 * 64;
        return offset;
    }
};

}  // namespace inlay
