// Activations in 8 bits: what quantize_rows writes and multiply_quantized reads. A row is a sequence of blocks of 32
// values, each with its scale and the sums that weights with an offset or a zero point need, in one cache line: a
// product walks along a row with one pointer. docs/numerics.md has the arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>

namespace inlay::kernels {

struct alignas(64) QuantizedBlock {
    int8_t q[32];                   // the values are about d * q
    float d;                        //
    float sum;                      // d * float(sum of q)
    float half_sum[2];              // d * float(sum of the q of each half block of 16)
    int32_t minus_128_sum;          // -128 * sum of q
    int32_t minus_128_half_sum[2];  // of each half
    int32_t unused;                 // 0
};
static_assert(sizeof(QuantizedBlock) == 64);

// A row that is quantised twice has a second sequence of blocks, `rest`, of what the first leaves: a value is about
// rest.d * (q * 2^kRestBits + rest.q). The rest's sums are those of both; its -128 times sums of its own q.
inline constexpr unsigned kRestBits = 7;

// Blocks with a larger |x| than this (the bits of 2^-120), and finite, have a scale; smaller ones are zero.
inline constexpr int32_t kSmallestQuantizedBits = 0x03800000;
inline constexpr int32_t kInfinityBits = 0x7f800000;

// Rows are 64-byte aligned. n_cols: a multiple of 32.
constexpr size_t quantized_row_bytes(size_t n_cols) {
    return n_cols / 32 * sizeof(QuantizedBlock);
}

}  // namespace inlay::kernels
