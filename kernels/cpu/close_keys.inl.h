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

// Of each channel, read sixteen at a time.
using ByChannel = float[kMaxHeadDim + 16];

INLAY_LANES F32x16 floor(F32x16 x) {
    const F32x16 rounded = to_float(round_to_int(x));
    return select(rounded > x, rounded - broadcast(1.0f), rounded);
}
INLAY_LANES float ceil(float x) {
    float ceiled[16];
    store(ceiled, negate(floor(broadcast(-x))));
    return ceiled[0];
}

// The ranges; returns the bits of the largest magnitude.
static int32_t find_ranges(const uint16_t* tile, size_t dim, ByChannel& low, ByChannel& high) {
    I32x16 largest = broadcast(int32_t{0});
    for (size_t d = 0; d < dim; d += 4) {
        alignas(64) float channels[4 * kBlockTokens];
        for (size_t i = 0; i < 4; ++i) {
            const F32x16 channel = load_f16(tile + (d + i) * kBlockTokens);
            largest = max(largest, magnitude_bits(channel));
            store(channels + i * kBlockTokens, channel);
        }
        fold_four(channels, low + d, [](F32x16 a, F32x16 b) { return min(a, b); });
        fold_four(channels, high + d, [](F32x16 a, F32x16 b) { return max(a, b); });
    }
    for (size_t d = dim; d < dim + 16; ++d) low[d] = high[d] = 0.0f;
    return fold_max(largest);
}

// What the codes of scales and of minima stand for.
struct KeyUnits {
    float scale, minimum;
};

// A line for each channel, key = minimum + step * code, and its squared error over the tokens.
struct KeyLines {
    alignas(64) ByChannel minimum_code, scale_code, minimum, step, inverse, error;
};

INLAY_LANES void set_lines(KeyLines& lines, size_t d, F32x16 minimum_code, F32x16 steps, KeyUnits units) {
    const F32x16 scale_code = to_float(round_to_int(between(steps, 1.0f, Q::kLargestScaleCode)));
    const F32x16 step = scale_code * broadcast(units.scale);
    store(lines.minimum_code + d, minimum_code);
    store(lines.scale_code + d, scale_code);
    store(lines.minimum + d, minimum_code * broadcast(units.minimum));
    store(lines.step + d, step);
    store(lines.inverse + d, inverse_of(step));
}

INLAY_LANES I32x16 codes_above(F32x16 above, const KeyLines& lines, size_t d) {
    return round_to_int(between(above * broadcast(lines.inverse[d]), 0.0f, Q::kLargestKeyCode));
}

// The lines from the lowest to the highest key.
static void span_ranges(const ByChannel& low, const ByChannel& high, size_t dim, KeyUnits units, KeyLines& lines) {
    for (size_t d = 0; d < dim; d += 16) {
        const F32x16 code = between(floor(load(low + d) / broadcast(units.minimum)), -Q::kLargestCode, Q::kLargestCode);
        const F32x16 height = load(high + d) - code * broadcast(units.minimum);
        set_lines(lines, d, code, height / broadcast(Q::kLargestKeyCode * units.scale), units);
    }
}

// Sums over the tokens of a channel, for a fit.
struct KeySums {
    alignas(64) ByChannel code, square, above, product;
};

// The errors of the lines; and the sums, unless that is null.
static void sum_tokens(const uint16_t* tile, size_t dim, KeyLines& lines, KeySums* sums) {
    const auto add = [](F32x16 a, F32x16 b) { return a + b; };
    for (size_t d = 0; d < dim; d += 4) {
        alignas(64) float error[64], code[64], square[64], above[64], product[64];  // [4 channels, tokens]
        for (size_t i = 0; i < 4; ++i) {
            const F32x16 x = load_f16(tile + (d + i) * kBlockTokens) - broadcast(lines.minimum[d + i]);
            const F32x16 c = to_float(codes_above(x, lines, d + i));
            const F32x16 e = fma(negate(c), broadcast(lines.step[d + i]), x);
            store(error + i * kBlockTokens, e * e);
            if (!sums) continue;
            store(code + i * kBlockTokens, c);
            store(square + i * kBlockTokens, c * c);
            store(above + i * kBlockTokens, x);
            store(product + i * kBlockTokens, c * x);
        }
        fold_four(error, lines.error + d, add);
        if (!sums) continue;
        fold_four(code, sums->code + d, add);
        fold_four(square, sums->square + d, add);
        fold_four(above, sums->above + d, add);
        fold_four(product, sums->product + d, add);
    }
}

// The lines of least squares through the codes of `lines`.
static void fit_lines(const KeyLines& lines, const KeySums& sums, size_t dim, KeyUnits units, KeyLines& fitted) {
    const F32x16 tokens = broadcast(static_cast<float>(kBlockTokens));
    const F32x16 unit = broadcast(units.minimum);
    for (size_t d = 0; d < dim; d += 16) {
        const F32x16 code = load(sums.code + d);
        const F32x16 square = load(sums.square + d);
        const F32x16 above = load(sums.above + d);
        const F32x16 product = load(sums.product + d);
        const F32x16 spread = tokens * square - code * code;
        const F32x16 slope = (tokens * product - code * above) / spread;
        const F32x16 shift = (above - slope * code) / tokens;
        const F32x16 minimum = (load(lines.minimum + d) + shift) / unit;
        const F32x16 best_minimum_code = to_float(round_to_int(between(minimum, -Q::kLargestCode, Q::kLargestCode)));
        const F32x16 lowered = (load(lines.minimum_code + d) - best_minimum_code) * unit;
        const F32x16 best_steps = fma(lowered, code, product) / (square * broadcast(units.scale));
        // Where all codes are the same there is no line through them.
        const Mask16 fits = spread > zero();
        set_lines(fitted, d, select(fits, best_minimum_code, load(lines.minimum_code + d)),
                  select(fits, best_steps, load(lines.scale_code + d)), units);
    }
}

// Where the other lines err less they are taken.
static void keep_better(KeyLines& lines, const KeyLines& other, size_t dim) {
    const auto keep = [&](ByChannel& ours, const ByChannel& theirs, size_t d) {
        store(ours + d, select(load(other.error + d) < load(lines.error + d), load(theirs + d), load(ours + d)));
    };
    for (size_t d = 0; d < dim; d += 16) {
        keep(lines.minimum_code, other.minimum_code, d);
        keep(lines.scale_code, other.scale_code, d);
        keep(lines.minimum, other.minimum, d);
        keep(lines.inverse, other.inverse, d);
    }
}

static KeyUnits choose_units(const ByChannel& low, const ByChannel& high, size_t dim, std::byte* parameters) {
    F32x16 most_range = zero();
    F32x16 most_low = zero();
    for (size_t d = 0; d < dim; d += 16) {
        most_range = max(most_range, load(high + d) - load(low + d));
        most_low = max(most_low, abs(load(low + d)));
    }
    const float largest_range = fold_max(most_range) * Q::kScaleOfRange;
    const float largest_low = fold_max(most_low);
    const float low_scale = largest_low * Q::kScaleOfMinimum;
    uint16_t halves[16];
    float scales[16];
    store(scales, store_scales(broadcast(largest_range > low_scale ? largest_range : low_scale), halves));
    float unit_code = ceil(largest_low / (Q::kLargestCode * scales[0]));
    unit_code = unit_code < Q::kLargestMinimumUnit ? unit_code : Q::kLargestMinimumUnit;
    unit_code = unit_code > 1.0f ? unit_code : 1.0f;
    const uint16_t stored[2] = {halves[0], static_cast<uint16_t>(unit_code)};
    __builtin_memcpy(parameters, stored, sizeof stored);
    return {scales[0], unit_code * scales[0]};
}

static void store_lines(const uint16_t* tile, size_t dim, const KeyLines& lines, std::byte* codes,
                        std::byte* parameters) {
    int8_t scale_codes[kMaxHeadDim + 16];
    int8_t minimum_codes[kMaxHeadDim + 16];
    for (size_t d = 0; d < dim; d += 16) {
        store_s8(scale_codes + d, round_to_int(load(lines.scale_code + d)));
        store_s8(minimum_codes + d, round_to_int(load(lines.minimum_code + d)));
    }
    __builtin_memcpy(parameters + 4, scale_codes, dim);
    __builtin_memcpy(parameters + 4 + dim, minimum_codes, dim);
    for (size_t chunk = 0; chunk < dim; chunk += 8) {
        const auto code_of = [&](size_t channel) __attribute__((always_inline)) {
            const size_t d = chunk + channel;
            return codes_above(load_f16(tile + d * kBlockTokens) - broadcast(lines.minimum[d]), lines, d);
        };
        store(reinterpret_cast<int32_t*>(codes + chunk * 8), join_codes(code_of));
    }
}

static void close_int4_keys(const uint16_t* tile, size_t dim, std::byte* codes, std::byte* parameters) {
    alignas(64) ByChannel low, high;
    const int32_t bits = find_ranges(tile, dim, low, high);
    if (bits == 0 || bits >= Q::kInfinityBits) {
        __builtin_memset(codes, 0, dim / 8 * 64);
        __builtin_memset(parameters, 0, 4 + 2 * dim);
        const uint16_t scale = bits == 0 ? 0 : 0x7e00;
        __builtin_memcpy(parameters, &scale, sizeof scale);
        return;
    }
    const KeyUnits units = choose_units(low, high, dim, parameters);
    KeyLines lines{}, fitted{};
    KeySums sums{};
    span_ranges(low, high, dim, units, lines);
    sum_tokens(tile, dim, lines, &sums);
    fit_lines(lines, sums, dim, units, fitted);
    sum_tokens(tile, dim, fitted, nullptr);
    keep_better(lines, fitted, dim);
    store_lines(tile, dim, lines, codes, parameters);
}

void close_keys(const std::byte* tile, size_t head_dim, KvType type, std::byte* codes, std::byte* parameters) {
    const auto* halves = reinterpret_cast<const uint16_t*>(tile);
    if (type == KvType::kInt8) close_int8_keys(halves, head_dim, codes, parameters);
    if (type == KvType::kInt4) close_int4_keys(halves, head_dim, codes, parameters);
}

}  // namespace inlay::kernels::INLAY_ISA
