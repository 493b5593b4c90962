// The two products of attention with exact keys and values, register-tiled: scores (queries with keys) and outputs
// (weights with values). A tile holds several (row, head) pairs that look at the same KV head, so that each key and
// value vector is loaded and converted once for all of them. Lanes are tokens in the first product and channels in the
// second; no tile shape changes a bit.
//
// How a vector of a plane becomes sixteen floats is all that depends on the element type: `load_elements`.
#include "kernels/kernels.h"
#include "kernels/quantized_kv.h"

namespace inlay::kernels::INLAY_ISA {

// Sixteen-lane accumulators that leave registers for the operands, and the most pairs that share one vector.
constexpr size_t kMaxPairs = INLAY_REGISTERS >= 32 ? 12 : INLAY_REGISTERS >= 8 ? 6 : 4;
constexpr size_t kScoreTile = INLAY_REGISTERS >= 32 ? 16 : 4;
constexpr size_t kValueTile = INLAY_REGISTERS >= 32 ? 24 : 4;
constexpr size_t kKeyBatches = 4;   // scores are taken of 1, 2, 4 or 8 blocks at a time
constexpr size_t kMaxBatch = 8;     // blocks of one batch: what lies between the products is done for all of them
constexpr size_t kMaxVectors = 48;  // pairs times blocks of one batch
constexpr size_t kDotBlock = 32;    // a dot product is a sum of sums over this many dimensions

// The elements index..index + 15 of a plane; `n`: only so many exist.
template <KvType type>
INLAY_LANES F32x16 load_elements(const std::byte* plane, size_t index) {
    if constexpr (type == KvType::kF32) return load(reinterpret_cast<const float*>(plane) + index);
    if constexpr (type == KvType::kF16) return load_f16(reinterpret_cast<const uint16_t*>(plane) + index);
    if constexpr (type == KvType::kBf16) return load_bf16(reinterpret_cast<const uint16_t*>(plane) + index);
}
template <KvType type>
INLAY_LANES F32x16 load_elements(const std::byte* plane, size_t index, size_t n) {
    if constexpr (type == KvType::kF32) return load_partial(reinterpret_cast<const float*>(plane) + index, n);
    if constexpr (type == KvType::kF16) return load_f16_partial(reinterpret_cast<const uint16_t*>(plane) + index, n);
    if constexpr (type == KvType::kBf16) {
        uint16_t all[16] = {};
        __builtin_memcpy(all, reinterpret_cast<const uint16_t*>(plane) + index, (n < 16 ? n : 16) * sizeof(uint16_t));
        return load_bf16(all);
    }
}

// Scores of `blocks` blocks. queries: [head_dim, pairs]; keys: [blocks] planes; scores: [blocks, pairs, 16 tokens].
// Eight dims are a piece of `ahead`.
template <size_t pairs, size_t blocks, KvType type>
static void multiply_keys(const float* queries, size_t head_dim, float scale, const std::byte* const* keys,
                          const ReadAhead& ahead, float* scores) {
    constexpr size_t n = pairs * blocks;
    F32x16 total[n];
#pragma GCC unroll 16
    for (size_t i = 0; i < n; ++i) total[i] = zero();
    for (size_t begin = 0; begin < head_dim; begin += kDotBlock) {
        const size_t end = begin + kDotBlock < head_dim ? begin + kDotBlock : head_dim;
        F32x16 part[n];
#pragma GCC unroll 16
        for (size_t i = 0; i < n; ++i) part[i] = zero();
        for (size_t d = begin; d < end; ++d) {
            if (d % 8 == 0)
                for (size_t b = 0; b < blocks; ++b) ask_for(ahead, b, d / 8);
            F32x16 key[blocks];
#pragma GCC unroll 8
            for (size_t b = 0; b < blocks; ++b) key[b] = load_elements<type>(keys[b], d * kBlockTokens);
#pragma GCC unroll 12
            for (size_t p = 0; p < pairs; ++p) {
                const F32x16 query = broadcast(queries[d * pairs + p]);
#pragma GCC unroll 8
                for (size_t b = 0; b < blocks; ++b) part[b * pairs + p] = fma(key[b], query, part[b * pairs + p]);
            }
        }
#pragma GCC unroll 16
        for (size_t i = 0; i < n; ++i) total[i] = total[i] + part[i];
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < n; ++i) store(scores + i * kBlockTokens, broadcast(scale) * total[i]);
}

// Which tokens of one block the pairs of a tile see. Ascending, the tokens come in three runs: first_common..end_common
// is seen by all pairs, what lies before and after within first..end by those whose bit is set in `seen`.
struct BlockView {
    const std::byte* values;
    uint8_t first, first_common, end_common, end;
    uint16_t seen[kMaxPairs];  // bit t: token t
};

// One token's share in the outputs of the pairs that see it.
template <size_t pairs, size_t vectors>
INLAY_LANES void add_token(F32x16 (&sums)[pairs * vectors], const F32x16 (&value)[vectors], const float* weights) {
#pragma GCC unroll 12
    for (size_t p = 0; p < pairs; ++p) {
        const F32x16 weight = broadcast(weights[p * kBlockTokens]);
#pragma GCC unroll 8
        for (size_t c = 0; c < vectors; ++c) sums[p * vectors + c] = fma(weight, value[c], sums[p * vectors + c]);
    }
}
template <size_t pairs, size_t vectors>
INLAY_LANES void add_token_where(F32x16 (&sums)[pairs * vectors], const F32x16 (&value)[vectors], const float* weights,
                                 const uint16_t* seen, unsigned token) {
#pragma GCC unroll 12
    for (size_t p = 0; p < pairs; ++p) {
        if ((seen[p] >> token & 1) == 0) continue;
        const F32x16 weight = broadcast(weights[p * kBlockTokens]);
#pragma GCC unroll 8
        for (size_t c = 0; c < vectors; ++c) sums[p * vectors + c] = fma(weight, value[c], sums[p * vectors + c]);
    }
}

// The outputs of a tile from one channel on. outputs: [pairs, output_stride]
template <size_t pairs, size_t vectors>
INLAY_LANES void load_outputs(F32x16 (&sums)[pairs * vectors], const float* outputs, size_t output_stride) {
#pragma GCC unroll 12
    for (size_t p = 0; p < pairs; ++p) {
#pragma GCC unroll 8
        for (size_t c = 0; c < vectors; ++c) sums[p * vectors + c] = load(outputs + p * output_stride + 16 * c);
    }
}
template <size_t pairs, size_t vectors>
INLAY_LANES void store_outputs(const F32x16 (&sums)[pairs * vectors], float* outputs, size_t output_stride) {
#pragma GCC unroll 12
    for (size_t p = 0; p < pairs; ++p) {
#pragma GCC unroll 8
        for (size_t c = 0; c < vectors; ++c) store(outputs + p * output_stride + 16 * c, sums[p * vectors + c]);
    }
}

// The channels from `channel` on, `vectors` times sixteen of them, or `rest` if that is not 0.
// weights: [n_blocks, pairs, 16 tokens]; rescale: [n_blocks, pairs]; outputs: [pairs, output_stride].
// A token is a piece of `ahead`; `first_piece` is that of token 0.
template <size_t pairs, size_t vectors, KvType type>
INLAY_LANES void multiply_channels(const BlockView* views, size_t n_blocks, const float* weights, const float* rescale,
                                   size_t value_dim, size_t channel, size_t rest, const ReadAhead& ahead,
                                   size_t first_piece, float* outputs, size_t output_stride) {
    F32x16 sums[pairs * vectors];
    load_outputs<pairs, vectors>(sums, outputs + channel, output_stride);
    for (size_t b = 0; b < n_blocks; ++b) {
        const BlockView& view = views[b];
        const float* block_weights = weights + b * pairs * kBlockTokens;
#pragma GCC unroll 12
        for (size_t p = 0; p < pairs; ++p) {
            const F32x16 factor = broadcast(rescale[b * pairs + p]);
#pragma GCC unroll 8
            for (size_t c = 0; c < vectors; ++c) sums[p * vectors + c] = sums[p * vectors + c] * factor;
        }
        unsigned t = view.first;
        const auto load_token = [&](F32x16(&value)[vectors]) __attribute__((always_inline)) {
            const size_t index = t * value_dim + channel;
#pragma GCC unroll 8
            for (size_t c = 0; c < vectors; ++c) {
                value[c] = rest == 0 ? load_elements<type>(view.values, index + 16 * c)
                                     : load_elements<type>(view.values, index, rest);
            }
        };
        F32x16 value[vectors];
        for (; t < view.first_common; ++t) {
            load_token(value);
            add_token_where<pairs, vectors>(sums, value, block_weights + t, view.seen, t);
        }
        for (; t < view.end_common; ++t) {
            ask_for(ahead, b, first_piece + t);
            load_token(value);
            add_token<pairs, vectors>(sums, value, block_weights + t);
        }
        for (; t < view.end; ++t) {
            load_token(value);
            add_token_where<pairs, vectors>(sums, value, block_weights + t, view.seen, t);
        }
    }
    store_outputs<pairs, vectors>(sums, outputs + channel, output_stride);
}

// Vectors of channels of one pass through a block, and passes.
INLAY_LANES constexpr size_t value_vectors(size_t pairs) {
    return pairs * 4 <= kValueTile ? 4 : pairs * 2 <= kValueTile ? 2 : 1;
}
INLAY_LANES size_t passes_of(size_t value_dim, size_t vectors) {
    const size_t n = (value_dim + 15) / 16;
    return n / vectors + n % vectors;
}

template <size_t pairs, KvType type>
static void multiply_values(const BlockView* views, size_t n_blocks, const float* weights, const float* rescale,
                            size_t value_dim, const ReadAhead& ahead, float* outputs, size_t output_stride) {
    constexpr size_t vectors = value_vectors(pairs);
    size_t channel = 0;
    size_t piece = 0;
    for (; channel + 16 * vectors <= value_dim; channel += 16 * vectors, piece += kBlockTokens) {
        multiply_channels<pairs, vectors, type>(views, n_blocks, weights, rescale, value_dim, channel, 0, ahead, piece,
                                                outputs, output_stride);
    }
    for (; channel < value_dim; channel += 16, piece += kBlockTokens) {
        const size_t rest = value_dim - channel < 16 ? value_dim - channel : 0;
        multiply_channels<pairs, 1, type>(views, n_blocks, weights, rescale, value_dim, channel, rest, ahead, piece,
                                          outputs, output_stride);
    }
}

}  // namespace inlay::kernels::INLAY_ISA
