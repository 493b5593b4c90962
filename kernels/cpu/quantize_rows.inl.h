// Rows of activations to 8 bits; the definition is reference/quantize_rows.cpp. Sixteen blocks at a time: what is done
// once a block (folds, scales, sums) then has a lane for each.
#include "kernels/quantized_rows.h"

namespace inlay::kernels::INLAY_ISA {

constexpr size_t kBlocksAtOnce = 16;
constexpr size_t kHalfBlock = 16;
constexpr size_t kBlockValues = 2 * kHalfBlock;

INLAY_LANES F32x16 larger_bits(F32x16 a, F32x16 b) {
    return float_of(max(bits_of(a), bits_of(b)));
}
INLAY_LANES F32x16 sum_of_bits(F32x16 a, F32x16 b) {
    return float_of(bits_of(a) + bits_of(b));
}

// A vector for each of sixteen blocks, to be folded to a lane for each.
struct BlockVectors {
    alignas(64) float lanes[kBlocksAtOnce * 16];

    void set(size_t block, I32x16 a) { store(lanes + 16 * block, float_of(a)); }
    // Of the blocks 0..n - 1; the lanes from n on are 0 or mean nothing.
    template <typename Combine>
    I32x16 fold(size_t n, Combine combine) {
        alignas(64) float folded[kBlocksAtOnce] = {};
        for (size_t block = n; block % 4 != 0; ++block) store(lanes + 16 * block, zero());
        for (size_t block = 0; block < n; block += 4) fold_four(lanes + 16 * block, folded + block, combine);
        return bits_of(load(folded));
    }
};

// Scales and sums of sixteen blocks, field by field as QuantizedBlock has them.
struct BlockFields {
    alignas(64) float d[kBlocksAtOnce];
    alignas(64) float sum[kBlocksAtOnce];
    alignas(64) float half_sum[2][kBlocksAtOnce];
    alignas(64) int32_t minus_128_sum[kBlocksAtOnce];
    alignas(64) int32_t minus_128_half_sum[2][kBlocksAtOnce];

    // both: the sums that `sum` and `half_sum` are made of; own: those of this part's q
    void set(F32x16 scale, const I32x16* both, const I32x16* own) {
        store(d, scale);
        store(sum, scale * to_float(both[0] + both[1]));
        store(minus_128_sum, broadcast(int32_t{0}) - shift_left<7>(own[0] + own[1]));
        for (size_t half = 0; half < 2; ++half) {
            store(half_sum[half], scale * to_float(both[half]));
            store(minus_128_half_sum[half], broadcast(int32_t{0}) - shift_left<7>(own[half]));
        }
    }
    void write(size_t n, QuantizedBlock* out) const {
        for (size_t block = 0; block < n; ++block) {
            out[block].d = d[block];
            out[block].sum = sum[block];
            out[block].half_sum[0] = half_sum[0][block];
            out[block].half_sum[1] = half_sum[1][block];
            out[block].minus_128_sum = minus_128_sum[block];
            out[block].minus_128_half_sum[0] = minus_128_half_sum[0][block];
            out[block].minus_128_half_sum[1] = minus_128_half_sum[1][block];
            out[block].unused = 0;
        }
    }
};

// x: [n] blocks, n at most 16. rest: only where `twice`.
template <bool twice>
static void quantize_blocks(const float* const* x, size_t n, QuantizedBlock* out, QuantizedBlock* rest) {
    const I32x16 no_sign = broadcast(int32_t{0x7fffffff});
    BlockVectors magnitudes;
    for (size_t block = 0; block < n; ++block)
        magnitudes.set(block, max(bits_of(load(x[block])) & no_sign, bits_of(load(x[block] + kHalfBlock)) & no_sign));
    const I32x16 largest = magnitudes.fold(n, larger_bits);
    const Mask16 has_scale = largest > broadcast(kSmallestQuantizedBits - 1);
    const Mask16 is_finite = broadcast(kInfinityBits) > largest;
    const F32x16 most = broadcast(127.0f);
    const F32x16 d = select(has_scale, float_of(largest) / most, zero());
    alignas(64) float inverses[kBlocksAtOnce];  // 0: all q are 0
    store(inverses, select(has_scale & is_finite, most / float_of(largest), zero()));

    BlockVectors own[2];   // the q of each half
    BlockVectors left[2];  // and of the rest
    for (size_t block = 0; block < n; ++block) {
        const F32x16 inverse = broadcast(inverses[block]);
        for (size_t half = 0; half < 2; ++half) {
            const F32x16 values = inverses[block] != 0.0f ? load(x[block] + half * kHalfBlock) : zero();
            const I32x16 q = round_to_int(values * inverse);
            store_s8(out[block].q + half * kHalfBlock, q);
            own[half].set(block, q);
            if constexpr (twice) {
                const F32x16 rest_of = fma(values, inverse, negate(to_float(q)));
                const I32x16 rest_q = round_to_int(rest_of * broadcast(static_cast<float>(1 << kRestBits)));
                store_s8(rest[block].q + half * kHalfBlock, rest_q);
                left[half].set(block, rest_q);
            }
        }
    }
    const I32x16 sums[2] = {own[0].fold(n, sum_of_bits), own[1].fold(n, sum_of_bits)};
    BlockFields fields;
    fields.set(d, sums, sums);
    fields.write(n, out);
    if constexpr (twice) {
        const I32x16 rests[2] = {left[0].fold(n, sum_of_bits), left[1].fold(n, sum_of_bits)};
        const I32x16 both[2] = {shift_left<kRestBits>(sums[0]) + rests[0], shift_left<kRestBits>(sums[1]) + rests[1]};
        fields.set(d * broadcast(1.0f / (1 << kRestBits)), both, rests);
        fields.write(n, rest);
    }
}

template <bool twice>
INLAY_LANES void quantize_all(const float* x, size_t x_stride, size_t n_rows, size_t n_cols, QuantizedBlock* out,
                              QuantizedBlock* rest) {
    const size_t n_blocks = n_rows * (n_cols / kBlockValues);
    size_t column = 0;
    for (size_t first = 0; first < n_blocks; first += kBlocksAtOnce) {
        const size_t n = n_blocks - first < kBlocksAtOnce ? n_blocks - first : kBlocksAtOnce;
        const float* blocks[kBlocksAtOnce];
        for (size_t block = 0; block < n; ++block) {
            blocks[block] = x + column;
            column += kBlockValues;
            if (column < n_cols) continue;
            column = 0;
            x += x_stride;
        }
        quantize_blocks<twice>(blocks, n, out + first, twice ? rest + first : nullptr);
    }
}

void quantize_rows(const float* x, size_t x_stride, size_t n_rows, size_t n_cols, std::byte* out) {
    quantize_all<false>(x, x_stride, n_rows, n_cols, reinterpret_cast<QuantizedBlock*>(out), nullptr);
}

void quantize_rows_twice(const float* x, size_t x_stride, size_t n_rows, size_t n_cols, std::byte* out,
                         std::byte* rest) {
    quantize_all<true>(x, x_stride, n_rows, n_cols, reinterpret_cast<QuantizedBlock*>(out),
                       reinterpret_cast<QuantizedBlock*>(rest));
}

}  // namespace inlay::kernels::INLAY_ISA
