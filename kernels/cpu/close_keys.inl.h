// Keys of a full block to codes; lanes are tokens. The definition is reference/close_block.cpp.
namespace inlay::kernels::INLAY_ISA {

static void close_int8_keys(const uint16_t* tile, size_t dim, std::byte* codes, std::byte* parameters) {
    for (size_t begin = 0; begin < dim; begin += kKeyGroup) {
        const size_t end = begin + kKeyGroup < dim ? begin + kKeyGroup : dim;
        I32x16 largest = broadcast(int32_t{0});
        for (size_t d = begin; d < end; ++d) largest = max(largest, magnitude_bits(load_f16(tile + d * kBlockTokens)));
        const F32x16 inverse = close_scales(largest, parameters + begin / kKeyGroup * kBlockTokens * 2);
        for (size_t d = begin; d < end; d += 2) {
            const I32x16 even = int8_codes(load_f16(tile + d * kBlockTokens), inverse);
            const I32x16 odd = int8_codes(load_f16(tile + (d + 1) * kBlockTokens), inverse);
            store_byte_pairs(codes + d * kBlockTokens, even, odd);
        }
    }
}

// What a block's channels hold. The arrays are read sixteen at a time.
struct KeyRanges {
    alignas(64) float low[kMaxHeadDim + 16];
    alignas(64) float high[kMaxHeadDim + 16];
    alignas(64) float inverse[kMaxHeadDim + 16];  // of the step from code to code
};

INLAY_LANES F32x16 floor(F32x16 x) {
    const F32x16 rounded = to_float(round_to_int(x));
    return select(rounded > x, rounded - broadcast(1.0f), rounded);
}
INLAY_LANES float ceil(float x) {
    float ceiled[16];
    store(ceiled, negate(floor(broadcast(-x))));
    return ceiled[0];
}

// The ranges, and the bits of the largest magnitude.
static int32_t find_ranges(const uint16_t* tile, size_t dim, KeyRanges& ranges) {
    I32x16 largest = broadcast(int32_t{0});
    for (size_t d = 0; d < dim; d += 4) {
        alignas(64) float channels[4 * kBlockTokens];
        for (size_t i = 0; i < 4; ++i) {
            const F32x16 channel = load_f16(tile + (d + i) * kBlockTokens);
            largest = max(largest, magnitude_bits(channel));
            store(channels + i * kBlockTokens, channel);
        }
        fold_four(channels, ranges.low + d, [](F32x16 a, F32x16 b) { return min(a, b); });
        fold_four(channels, ranges.high + d, [](F32x16 a, F32x16 b) { return max(a, b); });
    }
    for (size_t d = dim; d < dim + 16; ++d) ranges.low[d] = ranges.high[d] = 0.0f;
    return fold_max(largest);
}

// Scale and minimum codes of the channels d..d + 15; leaves minimum and inverse step in `ranges`.
static void code_ranges(KeyRanges& ranges, size_t d, float scale, float unit, int8_t* scale_codes,
                        int8_t* minimum_codes) {
    const F32x16 minimum_code =
        between(floor(load(ranges.low + d) / broadcast(unit)), -Q::kLargestCode, Q::kLargestCode);
    const F32x16 minimum = minimum_code * broadcast(unit);
    const F32x16 steps = (load(ranges.high + d) - minimum) / broadcast(Q::kLargestKeyCode * scale);
    const I32x16 scale_code = round_to_int(between(steps, 1.0f, Q::kLargestScaleCode));
    store_s8(scale_codes + d, scale_code);
    store_s8(minimum_codes + d, round_to_int(minimum_code));
    store(ranges.low + d, minimum);
    store(ranges.inverse + d, inverse_of(to_float(scale_code) * broadcast(scale)));
}

static void close_int4_keys(const uint16_t* tile, size_t dim, std::byte* codes, std::byte* parameters) {
    KeyRanges ranges;
    const int32_t bits = find_ranges(tile, dim, ranges);
    uint16_t scale_and_unit[2] = {0, 0};
    if (bits == 0 || bits >= Q::kInfinityBits) {
        __builtin_memset(codes, 0, dim / 8 * 64);
        __builtin_memset(parameters, 0, 4 + 2 * dim);
        if (bits != 0) scale_and_unit[0] = 0x7e00;
        __builtin_memcpy(parameters, scale_and_unit, sizeof scale_and_unit);
        return;
    }
    F32x16 most_range = zero();
    F32x16 most_low = zero();
    for (size_t d = 0; d < dim; d += 16) {
        most_range = max(most_range, load(ranges.high + d) - load(ranges.low + d));
        most_low = max(most_low, abs(load(ranges.low + d)));
    }
    const float largest_range = fold_max(most_range) * Q::kScaleOfRange;
    const float largest_low = fold_max(most_low);
    const float low_scale = largest_low * Q::kScaleOfMinimum;
    uint16_t halves[16];
    float scales[16];
    store(scales, store_scales(broadcast(largest_range > low_scale ? largest_range : low_scale), halves));
    const float scale = scales[0];
    float unit_code = ceil(largest_low / (Q::kLargestCode * scale));
    unit_code = unit_code < Q::kLargestMinimumUnit ? unit_code : Q::kLargestMinimumUnit;
    unit_code = unit_code > 1.0f ? unit_code : 1.0f;
    scale_and_unit[0] = halves[0];
    scale_and_unit[1] = static_cast<uint16_t>(unit_code);
    __builtin_memcpy(parameters, scale_and_unit, sizeof scale_and_unit);

    int8_t scale_codes[kMaxHeadDim + 16];
    int8_t minimum_codes[kMaxHeadDim + 16];
    for (size_t d = 0; d < dim; d += 16) code_ranges(ranges, d, scale, unit_code * scale, scale_codes, minimum_codes);
    __builtin_memcpy(parameters + 4, scale_codes, dim);
    __builtin_memcpy(parameters + 4 + dim, minimum_codes, dim);

    for (size_t chunk = 0; chunk < dim; chunk += 8) {
        const auto code_of = [&](size_t channel) __attribute__((always_inline)) {
            const size_t d = chunk + channel;
            const F32x16 above = load_f16(tile + d * kBlockTokens) - broadcast(ranges.low[d]);
            return round_to_int(between(above * broadcast(ranges.inverse[d]), 0.0f, Q::kLargestKeyCode));
        };
        store(reinterpret_cast<int32_t*>(codes + chunk * 8), join_codes(code_of));
    }
}

void close_keys(const std::byte* tile, size_t head_dim, KvType type, std::byte* codes, std::byte* parameters) {
    const auto* halves = reinterpret_cast<const uint16_t*>(tile);
    if (type == KvType::kInt8) close_int8_keys(halves, head_dim, codes, parameters);
    if (type == KvType::kInt4) close_int4_keys(halves, head_dim, codes, parameters);
}

}  // namespace inlay::kernels::INLAY_ISA
