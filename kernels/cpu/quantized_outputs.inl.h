// Outputs of weights with quantised values: 32 integers of a block, two tokens of sixteen channels, times a pair of
// integer weights. Unpacked once for all pairs of a tile; what is unpacked is all that depends on the type.
namespace inlay::kernels::INLAY_ISA {

// Tokens 8 * half + 2 * step and the next, of the channels from `channel` on. padded_dim: channels of a row of codes.
template <KvType type, unsigned step>
INLAY_LANES I16x32 unpack_values(const std::byte* codes, size_t padded_dim, size_t channel, size_t half,
                                 const Levels& levels) {
    if constexpr (type == KvType::kInt8) return widen_bytes(codes + ((half * 4 + step) * padded_dim + channel) * 2);
    if constexpr (type == KvType::kInt4) return levels_of<step>(load_pairs(codes + channel * 8 + half * 64), levels);
}

// weights: [pairs, 16 tokens]
template <size_t pairs, size_t vectors, KvType type, unsigned step>
INLAY_LANES void add_values(I32x16 (&sums)[pairs * vectors], const std::byte* codes, size_t padded_dim, size_t channel,
                            size_t half, const Levels& levels, const int16_t* weights) {
    I16x32 value[vectors];
#pragma GCC unroll 4
    for (size_t c = 0; c < vectors; ++c)
        value[c] = unpack_values<type, step>(codes, padded_dim, channel + 16 * c, half, levels);
#pragma GCC unroll 12
    for (size_t p = 0; p < pairs; ++p) {
        const I16x32 weight = broadcast_pair(weights + p * kBlockTokens + half * 8 + step * 2);
#pragma GCC unroll 4
        for (size_t c = 0; c < vectors; ++c) sums[p * vectors + c] = dot_pairs(sums[p * vectors + c], value[c], weight);
    }
}

// What multiply_quantized_values takes beside the blocks. Integer weights: [n_blocks, pairs, 16 tokens], about weight *
// value scale / factor; factors and rescale: [n_blocks, pairs].
struct IntegerWeights {
    const int16_t* integers;
    const float* factors;
    const float* rescale;
};

// `vectors` times sixteen channels from `channel` on. Eight tokens are a piece of `ahead`; `first_piece` is the
// first's.
template <size_t pairs, size_t vectors, KvType type>
INLAY_LANES void multiply_quantized_channels(const ClosedBlock* values, size_t n_blocks, const IntegerWeights& weights,
                                             size_t padded_dim, size_t channel, const ReadAhead& ahead,
                                             size_t first_piece, float* outputs, size_t output_stride) {
    const Levels levels = load_levels(kValueLevels);
    F32x16 totals[pairs * vectors];
    load_outputs<pairs, vectors>(totals, outputs + channel, output_stride);
    for (size_t b = 0; b < n_blocks; ++b) {
        const int16_t* integers = weights.integers + b * pairs * kBlockTokens;
        I32x16 sums[pairs * vectors];
#pragma GCC unroll 12
        for (size_t i = 0; i < pairs * vectors; ++i) sums[i] = broadcast(int32_t{0});
        for (size_t half = 0; half < 2; ++half) {
            ask_for(ahead, b, first_piece + half);
            const auto add = [&]<unsigned step>() __attribute__((always_inline)) {
                add_values<pairs, vectors, type, step>(sums, values[b].codes, padded_dim, channel, half, levels,
                                                       integers);
            };
            add.template operator()<0>();
            add.template operator()<1>();
            add.template operator()<2>();
            add.template operator()<3>();
        }
#pragma GCC unroll 12
        for (size_t p = 0; p < pairs; ++p) {
            const F32x16 factor = broadcast(weights.factors[b * pairs + p]);
            const F32x16 rescale = broadcast(weights.rescale[b * pairs + p]);
#pragma GCC unroll 4
            for (size_t c = 0; c < vectors; ++c) {
                F32x16& total = totals[p * vectors + c];
                total = fma(to_float(sums[p * vectors + c]), factor, total * rescale);
            }
        }
    }
    store_outputs<pairs, vectors>(totals, outputs + channel, output_stride);
}

INLAY_LANES constexpr size_t quantized_value_vectors(size_t pairs) {
    return pairs * 4 <= kPairValueTile ? 4 : pairs * 2 <= kPairValueTile ? 2 : 1;
}

template <size_t pairs, KvType type>
static void multiply_quantized_values(const ClosedBlock* values, size_t n_blocks, const IntegerWeights& weights,
                                      size_t value_dim, const ReadAhead& ahead, float* outputs, size_t output_stride) {
    constexpr size_t vectors = quantized_value_vectors(pairs);
    const size_t padded_dim = (value_dim + 15) / 16 * 16;
    size_t channel = 0;
    size_t piece = 0;
    for (; channel + 16 * vectors <= padded_dim; channel += 16 * vectors, piece += 2)
        multiply_quantized_channels<pairs, vectors, type>(values, n_blocks, weights, padded_dim, channel, ahead, piece,
                                                          outputs, output_stride);
    for (; channel < padded_dim; channel += 16, piece += 2)
        multiply_quantized_channels<pairs, 1, type>(values, n_blocks, weights, padded_dim, channel, ahead, piece,
                                                    outputs, output_stride);
}

}  // namespace inlay::kernels::INLAY_ISA
