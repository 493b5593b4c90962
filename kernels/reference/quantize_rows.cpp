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

void set_sums(QuantizedBlock& block) {
    int32_t sums[2] = {0, 0};
    for (size_t k = 0; k < kTileCols; ++k) sums[k / 16] += block.q[k];
    block.sum = block.d * static_cast<float>(sums[0] + sums[1]);
    block.minus_128_sum = -128 * (sums[0] + sums[1]);
    for (size_t half = 0; half < 2; ++half) {
        block.half_sum[half] = block.d * static_cast<float>(sums[half]);
        block.minus_128_half_sum[half] = -128 * sums[half];
    }
}

// The sums of both parts, exact, from those that each has of its own.
void set_sums_of_both(const QuantizedBlock& first, QuantizedBlock& rest) {
    const auto both = [](int32_t of_first, int32_t of_rest) { return (of_first << kRestBits) / -128 + of_rest / -128; };
    rest.sum = rest.d * static_cast<float>(both(first.minus_128_sum, rest.minus_128_sum));
    for (size_t half = 0; half < 2; ++half)
        rest.half_sum[half] =
            rest.d * static_cast<float>(both(first.minus_128_half_sum[half], rest.minus_128_half_sum[half]));
}

// rest: null, or takes what the block leaves of the values.
void quantize_block(const float* x, QuantizedBlock& block, QuantizedBlock* rest) {
    block = {};
    if (rest) *rest = {};
    const int32_t largest = largest_magnitude_bits(x);
    if (largest < kSmallestQuantizedBits) return;
    const float amax = std::bit_cast<float>(largest);
    block.d = amax / 127.0f;
    if (rest) rest->d = block.d * (1.0f / (1 << kRestBits));
    if (largest < kInfinityBits) {
        const float inverse = 127.0f / amax;
        for (size_t k = 0; k < kTileCols; ++k) {
            block.q[k] = round_to_even(x[k] * inverse);
            if (!rest) continue;
            const float left = std::fma(x[k], inverse, -static_cast<float>(block.q[k]));  // -0.5..0.5
            rest->q[k] = round_to_even(left * (1 << kRestBits));
        }
    }
    set_sums(block);
    if (!rest) return;
    set_sums(*rest);
    set_sums_of_both(block, *rest);
}

}  // namespace

void reference_quantize_rows(const float* x, size_t x_stride, size_t n_rows, size_t n_cols, std::byte* out) {
    auto* blocks = reinterpret_cast<QuantizedBlock*>(out);
    for (size_t row = 0; row < n_rows; ++row) {
        for (size_t k = 0; k < n_cols; k += kTileCols) quantize_block(x + row * x_stride + k, *blocks++, nullptr);
    }
}

void reference_quantize_rows_twice(const float* x, size_t x_stride, size_t n_rows, size_t n_cols, std::byte* out,
                                   std::byte* rest) {
    auto* blocks = reinterpret_cast<QuantizedBlock*>(out);
    auto* rests = reinterpret_cast<QuantizedBlock*>(rest);
    for (size_t row = 0; row < n_rows; ++row) {
        for (size_t k = 0; k < n_cols; k += kTileCols) quantize_block(x + row * x_stride + k, *blocks++, rests++);
    }
}

}  // namespace inlay::kernels
