// Rows of activations to 8 bits; the definition is reference/quantize_rows.cpp.
#include "kernels/quantized_rows.h"

namespace inlay::kernels::INLAY_ISA {

INLAY_LANES void quantize_block(const float* x, QuantizedBlock& out) {
    const I32x16 no_sign = broadcast(int32_t{0x7fffffff});
    const F32x16 x0 = load(x);
    const F32x16 x1 = load(x + 16);
    const int32_t largest = fold_max(max(bits_of(x0) & no_sign, bits_of(x1) & no_sign));
    if (largest < kSmallestQuantizedBits) {
        out = {};
        return;
    }
    float amax;
    __builtin_memcpy(&amax, &largest, sizeof amax);
    const float d = amax / 127.0f;
    int32_t sum0 = 0;
    int32_t sum1 = 0;
    if (largest < kInfinityBits) {
        const F32x16 inverse = broadcast(127.0f / amax);
        const I32x16 q0 = round_to_int(x0 * inverse);
        const I32x16 q1 = round_to_int(x1 * inverse);
        store_s8(out.q, q0);
        store_s8(out.q + 16, q1);
        sum0 = fold_sum(q0);
        sum1 = fold_sum(q1);
    } else {
        __builtin_memset(out.q, 0, sizeof out.q);
    }
    out.d = d;
    out.sum = d * static_cast<float>(sum0 + sum1);
    out.half_sum[0] = d * static_cast<float>(sum0);
    out.half_sum[1] = d * static_cast<float>(sum1);
    out.minus_128_sum = -128 * (sum0 + sum1);
    out.minus_128_half_sum[0] = -128 * sum0;
    out.minus_128_half_sum[1] = -128 * sum1;
    out.unused = 0;
}

void quantize_rows(const float* x, size_t x_stride, size_t n_rows, size_t n_cols, std::byte* out) {
    auto* blocks = reinterpret_cast<QuantizedBlock*>(out);
    for (size_t row = 0; row < n_rows; ++row) {
        for (size_t k = 0; k < n_cols; k += kTileCols) quantize_block(x + row * x_stride + k, *blocks++);
    }
}

void quantize_rows_twice(const float* x, size_t x_stride, size_t n_rows, size_t n_cols, std::byte* out,
                         std::byte* rest) {
    auto* firsts = reinterpret_cast<QuantizedBlock*>(out);
    auto* rests = reinterpret_cast<QuantizedBlock*>(rest);
    for (size_t row = 0; row < n_rows; ++row) {
        for (size_t k = 0; k < n_cols; k += kTileCols) {
            const float* values = x + row * x_stride + k;
            QuantizedBlock& first = *firsts++;
            quantize_block(values, first);
            const F32x16 minus_d = broadcast(-first.d);
            float left[kTileCols];
            store(left, fma(minus_d, to_float(load_s8(first.q)), load(values)));
            store(left + 16, fma(minus_d, to_float(load_s8(first.q + 16)), load(values + 16)));
            quantize_block(left, *rests++);
        }
    }
}

}  // namespace inlay::kernels::INLAY_ISA
