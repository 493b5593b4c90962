// Rows of activations to 8 bits. The largest magnitude is found as an integer: of floats without sign the larger bits
// are the larger value, and not-a-number is larger than all, so it reaches `d` and through it the result.
#include <bit>
#include <cmath>

#include "kernels/quantized_rows.h"
#include "kernels/reference/products.h"

namespace inlay::kernels {
namespace {

int32_t largest_magnitude_bits(const float* x) {
    int32_t largest = 0;
    for (size_t k = 0; k < kTileCols; ++k) {
        const int32_t magnitude = std::bit_cast<int32_t>(x[k]) & 0x7fffffff;
        if (magnitude > largest) largest = magnitude;
    }
    return largest;
}

// x in -127..127.
int8_t round_to_even(float x) {
    const float floor = std::floor(x);
    const float rest = x - floor;  // exact
    const int below = static_cast<int>(floor);
    const bool up = rest > 0.5f || (rest == 0.5f && below % 2 != 0);
    return static_cast<int8_t>(up ? below + 1 : below);
}

QuantizedBlock quantize_block(const float* x) {
    QuantizedBlock block = {};
    const int32_t largest = largest_magnitude_bits(x);
    if (largest < kSmallestQuantizedBits) return block;
    const float amax = std::bit_cast<float>(largest);
    block.d = amax / 127.0f;
    int32_t sums[2] = {0, 0};
    if (largest < kInfinityBits) {
        const float inverse = 127.0f / amax;
        for (size_t k = 0; k < kTileCols; ++k) {
            block.q[k] = round_to_even(x[k] * inverse);
            sums[k / 16] += block.q[k];
        }
    }
    block.sum = block.d * static_cast<float>(sums[0] + sums[1]);
    block.minus_128_sum = -128 * (sums[0] + sums[1]);
    for (size_t half = 0; half < 2; ++half) {
        block.half_sum[half] = block.d * static_cast<float>(sums[half]);
        block.minus_128_half_sum[half] = -128 * sums[half];
    }
    return block;
}

}  // namespace

void reference_quantize_rows(const float* x, size_t x_stride, size_t n_rows, size_t n_cols, std::byte* out) {
    auto* blocks = reinterpret_cast<QuantizedBlock*>(out);
    for (size_t row = 0; row < n_rows; ++row) {
        for (size_t k = 0; k < n_cols; k += kTileCols) *blocks++ = quantize_block(x + row * x_stride + k);
    }
}

void reference_quantize_rows_twice(const float* x, size_t x_stride, size_t n_rows, size_t n_cols, std::byte* out,
                                   std::byte* rest) {
    reference_quantize_rows(x, x_stride, n_rows, n_cols, out);
    const auto* firsts = reinterpret_cast<const QuantizedBlock*>(out);
    auto* rests = reinterpret_cast<QuantizedBlock*>(rest);
    for (size_t row = 0; row < n_rows; ++row) {
        for (size_t k = 0; k < n_cols; k += kTileCols) {
            const QuantizedBlock& first = *firsts++;
            float left[kTileCols];
            for (size_t i = 0; i < kTileCols; ++i)
                left[i] = std::fma(-first.d, static_cast<float>(first.q[i]), x[row * x_stride + k + i]);
            *rests++ = quantize_block(left);
        }
    }
}

}  // namespace inlay::kernels
