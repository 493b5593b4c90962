// Scores of queries with quantised keys: 32 integers of a block times a pair of a query's, added up in 32 bits for each
// token. Unpacked once for all pairs of a tile; what is unpacked is all that depends on the type.
namespace inlay::kernels::INLAY_ISA {

// A closed block's keys or values.
struct ClosedBlock {
    const std::byte* codes;
    const std::byte* parameters;
};

// 4-bit keys are scale * code + minimum, both of a channel.
struct KeySteps {
    alignas(64) int16_t scale[kMaxHeadDim + 16];
    alignas(64) int16_t minimum[kMaxHeadDim + 16];
};

// 16 channels from `d` on; unit * minimum code is exact in f32.
INLAY_LANES void load_steps(const uint8_t* scales, const int8_t* minima, F32x16 unit, size_t d, KeySteps& steps) {
    store_low_halves(steps.scale + d, load_u8(scales));
    store_low_halves(steps.minimum + d, round_to_int(to_float(load_s8(minima)) * unit));
}

static void load_steps(const std::byte* parameters, size_t head_dim, KeySteps& steps) {
    uint16_t unit_code;
    __builtin_memcpy(&unit_code, parameters + 2, sizeof unit_code);
    const F32x16 unit = broadcast(static_cast<float>(unit_code));
    const auto* scales = reinterpret_cast<const uint8_t*>(parameters + 4);
    const auto* minima = reinterpret_cast<const int8_t*>(parameters + 4 + head_dim);
    size_t d = 0;
    for (; d + 16 <= head_dim; d += 16) load_steps(scales + d, minima + d, unit, d, steps);
    if (d == head_dim) return;
    uint8_t last_scales[16] = {};
    int8_t last_minima[16] = {};
    __builtin_memcpy(last_scales, scales + d, 8);
    __builtin_memcpy(last_minima, minima + d, 8);
    load_steps(last_scales, last_minima, unit, d, steps);
}

// Dims 8 * chunk + 2 * step and the next of all tokens.
template <KvType type, unsigned step>
INLAY_LANES I16x32 unpack_keys(const std::byte* codes, const KeySteps& steps, size_t chunk) {
    if constexpr (type == KvType::kInt8) return widen_bytes(codes + (chunk * 4 + step) * 32);
    if constexpr (type == KvType::kInt4) {
        const size_t d = chunk * 8 + step * 2;
        return nibbles<step>(load_pairs(codes + chunk * 64)) * broadcast_pair(steps.scale + d) +
               broadcast_pair(steps.minimum + d);
    }
}

template <size_t pairs, size_t blocks, KvType type, unsigned step>
INLAY_LANES void add_keys(I32x16 (&dots)[pairs * blocks], const ClosedBlock* keys, const KeySteps* steps, size_t chunk,
                          const int16_t* queries) {
    I16x32 key[blocks];
#pragma GCC unroll 8
    for (size_t b = 0; b < blocks; ++b)
        key[b] = unpack_keys<type, step>(keys[b].codes, steps[type == KvType::kInt4 ? b : 0], chunk);
#pragma GCC unroll 12
    for (size_t p = 0; p < pairs; ++p) {
        const I16x32 query = broadcast_pair(queries + ((chunk * 4 + step) * pairs + p) * 2);
#pragma GCC unroll 8
        for (size_t b = 0; b < blocks; ++b) dots[b * pairs + p] = dot_pairs(dots[b * pairs + p], key[b], query);
    }
}

// The tokens' scales of one group of dims.
template <KvType type>
INLAY_LANES F32x16 load_key_scales(const std::byte* parameters, size_t group) {
    const auto* scales = reinterpret_cast<const uint16_t*>(parameters);
    if constexpr (type == KvType::kInt8) return load_f16(scales + group * kBlockTokens);
    if constexpr (type == KvType::kInt4) {
        float first[16];
        store(first, load_f16_partial(scales, 1));
        return broadcast(first[0]);
    }
}

// Scores of `blocks` blocks. queries: [head_dim / 2, pairs, 2]; query_scales: [pairs]; scores: [blocks, pairs, 16].
// Eight dims are a piece of `ahead`.
template <size_t pairs, size_t blocks, KvType type>
static void multiply_quantized_keys(const int16_t* queries, const float* query_scales, size_t head_dim,
                                    const ClosedBlock* keys, const ReadAhead& ahead, float* scores) {
    constexpr size_t n = pairs * blocks;
    KeySteps steps[type == KvType::kInt4 ? blocks : 1];
    if constexpr (type == KvType::kInt4)
        for (size_t b = 0; b < blocks; ++b) load_steps(keys[b].parameters, head_dim, steps[b]);

    for (size_t begin = 0; begin < head_dim; begin += kKeyGroup) {
        const size_t end = begin + kKeyGroup < head_dim ? begin + kKeyGroup : head_dim;
        I32x16 dots[n];
#pragma GCC unroll 16
        for (size_t i = 0; i < n; ++i) dots[i] = broadcast(int32_t{0});
        for (size_t chunk = begin / 8; chunk < end / 8; ++chunk) {
            for (size_t b = 0; b < blocks; ++b) ask_for(ahead, b, chunk);
            add_keys<pairs, blocks, type, 0>(dots, keys, steps, chunk, queries);
            add_keys<pairs, blocks, type, 1>(dots, keys, steps, chunk, queries);
            add_keys<pairs, blocks, type, 2>(dots, keys, steps, chunk, queries);
            add_keys<pairs, blocks, type, 3>(dots, keys, steps, chunk, queries);
        }
#pragma GCC unroll 8
        for (size_t b = 0; b < blocks; ++b) {
            const F32x16 scales = load_key_scales<type>(keys[b].parameters, begin / kKeyGroup);
#pragma GCC unroll 12
            for (size_t p = 0; p < pairs; ++p) {
                float* score = scores + (b * pairs + p) * kBlockTokens;
                const F32x16 before = begin == 0 ? zero() : load(score);
                F32x16 total = fma(to_float(dots[b * pairs + p]), scales, before);
                if (end == head_dim) total = broadcast(query_scales[p]) * total;
                store(score, total);
            }
        }
    }
}

}  // namespace inlay::kernels::INLAY_ISA
