// What attention makes integers of on the way to quantised keys and values: queries and weights. The definition is
// reference/attention.cpp.
#include "kernels/quantized_kv.h"

namespace inlay::kernels::INLAY_ISA {

using Q = QuantizedKv;

// Pair `p` of the tile; `scale` is that of scores.
static void quantize_query(const float* query, size_t head_dim, float scale, size_t p, Tile& tile) {
    int16_t integers[kMaxHeadDim + 16];
    I32x16 most = broadcast(int32_t{0});
    for (size_t d = 0; d < head_dim; d += 16) most = max(most, bits_of(abs(load_partial(query + d, head_dim - d))));
    const int32_t largest = fold_max(most);
    float query_scale = 0.0f;
    float inverse = 0.0f;
    if (largest >= Q::kSmallestQueryBits) {
        float absmax;
        __builtin_memcpy(&absmax, &largest, sizeof absmax);
        query_scale = absmax * (1.0f / Q::kLargestQuery);  // not finite: carried into every score
        if (largest < Q::kInfinityBits) inverse = Q::kLargestQuery / absmax;
    }
    tile.query_scales[p] = scale * query_scale;
    for (size_t d = 0; d < head_dim; d += 16) {
        const I32x16 rounded = round_to_int(load_partial(query + d, head_dim - d) * broadcast(inverse));
        store_low_halves(integers + d, inverse == 0.0f ? broadcast(int32_t{0}) : rounded);
    }
    for (size_t d = 0; d < head_dim; d += 2)
        __builtin_memcpy(tile.integer_queries + (d / 2 * tile.pairs + p) * 2, integers + d, 2 * sizeof(int16_t));
}

// The weights of a batch, scaled by the values' scales, in units of the largest of each block and pair.
static void quantize_weights(Tile& tile, const ClosedBlock* values, size_t n_blocks) {
    const size_t pairs = tile.pairs;
    const size_t n = pairs * n_blocks;
    for (size_t b = 0; b < n_blocks; ++b) {
        const F32x16 scales = load_f16(reinterpret_cast<const uint16_t*>(values[b].parameters));
        for (size_t i = b * pairs; i < (b + 1) * pairs; ++i) {
            const F32x16 weight = load(tile.weights + i * kBlockTokens);
            store(tile.weights + i * kBlockTokens, select(weight > zero(), weight * scales, zero()));
        }
    }
    // None has a sign: the larger integer is the larger value, and NaN larger than all.
    for (size_t i = 0; i < n; i += 4)
        fold_four(tile.weights + i * kBlockTokens, tile.largest_weight + i,
                  [](F32x16 a, F32x16 b) { return float_of(max(bits_of(a), bits_of(b))); });
    alignas(64) float inverses[kVectorFloats];
    for (size_t i = 0; i < n; i += 16) {
        const F32x16 largest = load(tile.largest_weight + i);
        const Mask16 is_nothing = largest <= broadcast(Q::kSmallestWeight);
        store(inverses + i, select(is_nothing, zero(), broadcast(Q::kLargestWeight) / largest));
        store(tile.weight_factor + i, select(is_nothing, zero(), largest * broadcast(1.0f / Q::kLargestWeight)));
    }
    const I32x16 lowest = broadcast(int32_t{-32768});
    for (size_t i = 0; i < n; ++i) {
        const F32x16 integer = load(tile.weights + i * kBlockTokens) * broadcast(inverses[i]);
        store_low_halves(tile.integer_weights + i * kBlockTokens, max(round_to_int(integer), lowest));
    }
}

}  // namespace inlay::kernels::INLAY_ISA
