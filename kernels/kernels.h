// The operations that the CPU backend is made of, as one table of functions per instruction set. Every table computes
// the same bits (docs/numerics.md); `reference` is the definition, the others differ from it only in speed. No function
// allocates, throws or keeps state: they are called from workers inside a step.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/tensor_type.h"
#include "kernels/kv_type.h"
#include "kernels/packed_matrix.h"

namespace inlay::kernels {

inline constexpr size_t kMaxHeadDim = 256;      // of keys and values: tiles of heads lie on the stack
inline constexpr size_t kSplitPositions = 512;  // attention cuts the KV range at multiples of this

// One KV head of one layer inside the pages of a sequence, and the query rows that look at it. kernels/kv_type.h says
// how a block lies in its page.
//
// Where the key type or the value type is a quantised one, pages hold closed blocks. The rows' own block, the one that
// all of them lie in, and if wished block 0 are then read from exact tiles outside the pages (types: exact_type of
// each).
struct AttentionTask {
    const float* queries;     // [n_rows, n_heads, head_dim]: the query heads that share this KV head
    size_t query_row_stride;  // floats from row to row
    size_t n_rows;            // consecutive positions of one sequence; with own_keys all of one block
    size_t n_heads;           // query heads of the group
    size_t head_dim;          // a multiple of 8, at most kMaxHeadDim
    size_t value_dim;         // a multiple of 8, at most kMaxHeadDim
    uint32_t first_position;  // position of row 0; row r is at first_position + r
    uint32_t window;          // positions a row sees, its own included; 0: all
    float scale;              // scores are multiplied with this
    KvType key_type;
    KvType value_type;
    const std::byte* const* pages;     // [logical blocks] page of each; null: it left the window, or is exact
    size_t key_offset;                 // bytes from the page to this layer's and head's keys (tile or codes)
    size_t value_offset;               // and to its values
    size_t key_parameters_offset = 0;  // and to the parameters of each, where the type is quantised
    size_t value_parameters_offset = 0;
    const std::byte* own_keys = nullptr;    // tiles of the block that the rows lie in; null: all blocks lie in pages,
    const std::byte* own_values = nullptr;  // which no quantised type allows
    const std::byte* first_keys = nullptr;  // tiles of block 0, for rows of later blocks; null: it lies in its page
    const std::byte* first_values = nullptr;
};

// Softmax state of one (row, head): M, L, O[value_dim] one after the other; see docs/numerics.md.
inline constexpr size_t attention_state_floats(size_t value_dim) {
    return value_dim + 2;
}

struct Kernels {
    const char* name;  // "reference", "portable", "avx2", "avx512", "neon"

    // --- activations -------------------------------------------------------------------------------------------------
    // Bytes that quantised rows take: kernels/quantized_rows.h.
    // x: [n_rows, n_cols] with x_stride floats from row to row; out: n_rows * quantized_row_bytes(n_cols).
    void (*quantize_rows)(const float* x, size_t x_stride, size_t n_rows, size_t n_cols, std::byte* out);

    // The same with nearly twice the bits: what `out` leaves of each value is quantised again into `rest`, which has
    // out's size.
    void (*quantize_rows_twice)(const float* x, size_t x_stride, size_t n_rows, size_t n_cols, std::byte* out,
                                std::byte* rest);

    // y[r, i] = (x[r, i] / rms(x[r])) * weight[i]; x and y may be the same memory. [n_rows, n_cols]
    void (*rms_norm)(const float* x, size_t x_stride, const float* weight, float eps, size_t n_rows, size_t n_cols,
                     float* y, size_t y_stride);

    // out[i] = silu(gate[i]) * up[i] over [n_rows, n_cols]; out may be gate.
    void (*silu_multiply)(const float* gate, const float* up, size_t stride, size_t n_rows, size_t n_cols, float* out,
                          size_t out_stride);

    // The same with gelu, x / (1 + exp(-2u)), u = sqrt(2 / pi) * (x + 0.044715 * x^3): its form with tanh.
    void (*gelu_multiply)(const float* gate, const float* up, size_t stride, size_t n_rows, size_t n_cols, float* out,
                          size_t out_stride);

    // out[i] = exp((x[i] - largest) / temperature) over [n]; `largest` is finite and none of x is above it.
    void (*softmax_weights)(const float* x, size_t n, float largest, float temperature, float* out);

    // cos and sin of float(position) * inverse_frequency[i], times magnitude: out is [2, n_pairs] (all cos, then all
    // sin).
    void (*rope_angles)(uint32_t position, const float* inverse_frequency, float magnitude, size_t n_pairs, float* out);

    // Rotates n_heads heads of one row in place. `interleaved`: pairs are (2i, 2i + 1), else (i, i + n_pairs).
    // Channels from 2 * n_pairs on stay as they are.
    void (*rope_rotate)(float* x, size_t n_heads, size_t head_dim, const float* angles, size_t n_pairs,
                        bool interleaved);

    // --- products ----------------------------------------------------------------------------------------------------
    // y[r, g * 16 + i] for row groups first_group..end_group of w: dot(w, x[r]) + bias (null: none), added to what y
    // holds if `accumulate` (y + (dot + bias)). Only the outputs below w.n_rows are written.
    // Activations quantised by quantize_rows, `rest` null, or by quantize_rows_twice; w of a quantised type.
    void (*multiply_quantized)(const PackedMatrix& w, const std::byte* x, const std::byte* rest, size_t n_rows,
                               size_t first_group, size_t end_group, const float* bias, bool accumulate, float* y,
                               size_t y_stride);
    // Activations in f32; w of any type (quantised ones are dequantised tile by tile).
    void (*multiply_float)(const PackedMatrix& w, const float* x, size_t x_stride, size_t n_rows, size_t first_group,
                           size_t end_group, const float* bias, bool accumulate, float* y, size_t y_stride);

    // --- attention ---------------------------------------------------------------------------------------------------
    // Walsh-Hadamard transform of each vector in place, its own inverse: x is [n_vectors, dim], dim a multiple of 8 and
    // at most kMaxHeadDim. Pieces of descending powers of two are transformed each for itself (80: 64 + 16).
    void (*rotate)(float* x, size_t n_vectors, size_t dim);

    // Rounds keys and values of one row of one KV head to an exact type and stores them as token `slot` of a tile.
    void (*store_keys)(const float* k, size_t head_dim, KvType type, size_t slot, std::byte* keys);
    void (*store_values)(const float* v, size_t value_dim, KvType type, size_t slot, std::byte* values);
    // Quantises a full tile of f16: codes and parameters of `type` as kernels/kv_type.h describes them.
    void (*close_keys)(const std::byte* tile, size_t head_dim, KvType type, std::byte* codes, std::byte* parameters);
    void (*close_values)(const std::byte* tile, size_t value_dim, KvType type, std::byte* codes, std::byte* parameters);

    // Visits splits first_split..end_split in ascending order and merges each into states [n_rows, n_heads]. With
    // `fresh` the states are set from the first split that a row sees; otherwise they hold earlier splits.
    // Rows that see nothing of a split are left as they are (fresh: M = -inf, L = 0, O = 0).
    void (*attend)(const AttentionTask& task, size_t first_split, size_t end_split, bool fresh, float* states);
    // Merges `later` into `states`; both [n_states], the later one of the following splits.
    void (*merge_attention)(float* states, const float* later, size_t n_states, size_t value_dim);
    // out[s] = O / L. out: [n_states, value_dim]
    void (*finish_attention)(const float* states, size_t n_states, size_t value_dim, float* out);
};

// The plain definition (kernels/reference). Slow; for tests.
const Kernels& reference();
// Any x86-64-v2 or other 64-bit processor.
const Kernels& portable();
// Null where the build or this processor lacks them.
const Kernels* avx2();
const Kernels* avx512();
const Kernels* neon();
// The best of those that this processor has.
const Kernels& fastest();

}  // namespace inlay::kernels
