// Values of a full block to codes; lanes are channels. The definition is reference/close_block.cpp.
namespace inlay::kernels::INLAY_ISA {

// A block's values in f32, each token padded with zeros to whole vectors.
struct ValueTile {
    alignas(64) float values[kBlockTokens * kMaxHeadDim];  // [tokens, stride]
    size_t stride;

    const float* token(size_t t) const { return values + t * stride; }
};

// Returns the bits of the largest magnitude of each token.
static I32x16 load_tile(const uint16_t* tile, size_t dim, ValueTile& out) {
    out.stride = (dim + 15) / 16 * 16;
    int32_t largest[kBlockTokens];
    for (size_t t = 0; t < kBlockTokens; ++t) {
        I32x16 most = broadcast(int32_t{0});
        for (size_t i = 0; i < dim; i += 16) {
            const F32x16 x = load_f16_partial(tile + t * dim + i, dim - i);
            store(out.values + t * out.stride + i, x);
            most = max(most, magnitude_bits(x));
        }
        largest[t] = fold_max(most);
    }
    return load(largest);
}

static void close_int8_values(const uint16_t* tile, size_t dim, std::byte* codes, std::byte* parameters) {
    ValueTile values;
    float inverse[kBlockTokens];
    store(inverse, close_scales(load_tile(tile, dim, values), parameters));
    const I32x16 none = broadcast(int32_t{0});
    for (size_t t = 0; t < kBlockTokens; t += 2) {
        for (size_t i = 0; i < dim; i += 16) {
            const Mask16 exists = first_lanes(dim - i);
            const I32x16 even = int8_codes(load(values.token(t) + i), broadcast(inverse[t]));
            const I32x16 odd = int8_codes(load(values.token(t + 1) + i), broadcast(inverse[t + 1]));
            store_byte_pairs(codes + t * values.stride + i * 2, select(exists, even, none), select(exists, odd, none));
        }
    }
}

// The level next to y, and its index.
INLAY_LANES F32x16 nearest_level(F32x16 y) {
    const F32x16 magnitude = abs(y);
    F32x16 level = broadcast(static_cast<float>(kValueLevels[8]));
#pragma GCC unroll 7
    for (size_t i = 0; i < 7; ++i)
        level = select(magnitude > broadcast(kValueThresholds[i]), broadcast(static_cast<float>(kValueLevels[9 + i])),
                       level);
    return select(y < zero(), negate(level), level);
}
INLAY_LANES I32x16 nearest_index(F32x16 y) {
    const F32x16 magnitude = abs(y);
    I32x16 above = broadcast(int32_t{0});
#pragma GCC unroll 7
    for (int32_t i = 0; i < 7; ++i) above = select(magnitude > broadcast(kValueThresholds[i]), broadcast(i + 1), above);
    return select(y < zero(), broadcast(int32_t{7}) - above, broadcast(int32_t{8}) + above);
}

constexpr size_t kFactors = sizeof kRangeFactors / sizeof *kRangeFactors;
static_assert(kFactors % 4 == 0);  // calls of fold_four

// Squared errors of one token with each of the scales.
static void squared_errors(const float* x, size_t dim, const float* scales, const float* inverses, float* errors) {
    F32x16 sums[kFactors];
    for (size_t f = 0; f < kFactors; ++f) sums[f] = zero();
    for (size_t i = 0; i < dim; i += 16) {
        const F32x16 value = load(x + i);
#pragma GCC unroll 8
        for (size_t f = 0; f < kFactors; ++f) {
            const F32x16 level = nearest_level(value * broadcast(inverses[f]));
            F32x16 error = fma(negate(level), broadcast(scales[f]), value);
            if (dim - i < 16) error = select(first_lanes(dim - i), error, zero());  // the others do not exist
            sums[f] = fma(error, error, sums[f]);
        }
    }
    alignas(64) float rows[kFactors * 16];
    for (size_t f = 0; f < kFactors; ++f) store(rows + f * 16, sums[f]);
    for (size_t f = 0; f < kFactors; f += 4)
        fold_four(rows + f * 16, errors + f, [](F32x16 a, F32x16 b) { return a + b; });
}

// Stores the scales of the tokens and returns their inverses.
static F32x16 choose_scales(const ValueTile& values, size_t dim, I32x16 largest, std::byte* parameters) {
    uint16_t halves[kFactors][kBlockTokens];
    float scales[kBlockTokens][kFactors];
    float inverses[kBlockTokens][kFactors];
    for (size_t f = 0; f < kFactors; ++f) {
        float stored[kBlockTokens];
        float inverse[kBlockTokens];
        const F32x16 scale = store_scales(float_of(largest) * broadcast(kRangeFactors[f]), halves[f]);
        store(stored, scale);
        store(inverse, inverse_of(scale));
        for (size_t t = 0; t < kBlockTokens; ++t) {
            scales[t][f] = stored[t];
            inverses[t][f] = inverse[t];
        }
    }
    int32_t bits[kBlockTokens];
    store(bits, largest);
    uint16_t chosen[kBlockTokens];
    float inverse[kBlockTokens];
    for (size_t t = 0; t < kBlockTokens; ++t) {
        inverse[t] = 0.0f;
        chosen[t] = bits[t] < Q::kInfinityBits ? 0 : 0x7e00;
        if (bits[t] == 0 || bits[t] >= Q::kInfinityBits) continue;
        float errors[kFactors];
        squared_errors(values.token(t), dim, scales[t], inverses[t], errors);
        float best = __builtin_inff();
        for (size_t f = 0; f < kFactors; ++f) {
            if (!(errors[f] < best)) continue;
            best = errors[f];
            chosen[t] = halves[f][t];
            inverse[t] = inverses[t][f];
        }
    }
    __builtin_memcpy(parameters, chosen, sizeof chosen);
    return load(inverse);
}

static void close_int4_values(const uint16_t* tile, size_t dim, std::byte* codes, std::byte* parameters) {
    ValueTile values;
    const I32x16 largest = load_tile(tile, dim, values);
    float inverse[kBlockTokens];
    store(inverse, choose_scales(values, dim, largest, parameters));
    for (size_t i = 0; i < dim; i += 16) {
        const Mask16 exists = first_lanes(dim - i);
        for (size_t half = 0; half < 2; ++half) {
            const auto code_of = [&](size_t token) __attribute__((always_inline)) {
                const size_t t = half * 8 + token;
                // What is not a number has no inverse and no code.
                const F32x16 y = load(values.token(t) + i) * broadcast(inverse[t]);
                return nearest_index(select(y == y, y, zero()));
            };
            const I32x16 all = select(exists, join_codes(code_of), broadcast(int32_t{0}));
            store(reinterpret_cast<int32_t*>(codes + i * 8 + half * 64), all);
        }
    }
}

void close_values(const std::byte* tile, size_t value_dim, KvType type, std::byte* codes, std::byte* parameters) {
    const auto* halves = reinterpret_cast<const uint16_t*>(tile);
    if (type == KvType::kInt8) close_int8_values(halves, value_dim, codes, parameters);
    if (type == KvType::kInt4) close_int4_values(halves, value_dim, codes, parameters);
}

}  // namespace inlay::kernels::INLAY_ISA
