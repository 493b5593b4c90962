// Exact tiles of f16 to codes and scales.
#include "kernels/reference/close_block.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/reference/closed_block.h"
#include "kernels/reference/exact_tile.h"
#include "kernels/reference/rounding.h"
#include "kernels/reference/row_sums.h"

namespace inlay::kernels {
namespace {

using Q = QuantizedKv;

float smaller(float a, float b) {
    return a < b ? a : b;
}

// Stores a scale of f16 and returns what it became. A NaN stays one.
float store_scale(float scale, std::byte* parameters, size_t index) {
    const uint16_t half = float_to_half(larger(Q::kSmallestScale, scale));
    store_u16(parameters, index, half);
    return half_to_float(half);
}

int32_t round_between(float x, float lowest, float highest) {
    return round_to_int(larger(smaller(x, highest), lowest));
}

// --- int8: one scale for a vector of n values x(i); code(i) takes what becomes of them ---
template <typename Value, typename Code>
void close_symmetric(size_t n, const Value& value, std::byte* scale, size_t scale_index, const Code& code) {
    int32_t largest = 0;
    for (size_t i = 0; i < n; ++i) largest = std::max(largest, magnitude_bits(value(i)));
    if (largest == 0) {
        store_u16(scale, scale_index, 0);
        for (size_t i = 0; i < n; ++i) code(i, 0);
        return;
    }
    const float absmax = std::bit_cast<float>(largest);
    const float inverse = 1.0f / store_scale(absmax / Q::kLargestCode, scale, scale_index);
    for (size_t i = 0; i < n; ++i) code(i, round_between(value(i) * inverse, -Q::kLargestCode, Q::kLargestCode));
}

void close_int8_keys(const std::byte* tile, size_t dim, std::byte* codes, std::byte* parameters) {
    for (size_t begin = 0; begin < dim; begin += kKeyGroup) {
        for (size_t t = 0; t < kBlockTokens; ++t) {
            close_symmetric(
                std::min(kKeyGroup, dim - begin),
                [&](size_t i) { return load_element(KvType::kF16, tile, (begin + i) * kBlockTokens + t); }, parameters,
                begin / kKeyGroup * kBlockTokens + t,
                [&](size_t i, int32_t code) { codes[int8_key_place(begin + i, t)] = static_cast<std::byte>(code); });
        }
    }
}

void close_int8_values(const std::byte* tile, size_t dim, std::byte* codes, std::byte* parameters) {
    for (size_t t = 0; t < kBlockTokens; ++t) {
        close_symmetric(
            dim, [&](size_t i) { return load_element(KvType::kF16, tile, t * dim + i); }, parameters, t,
            [&](size_t i, int32_t code) { codes[int8_value_place(i, t, dim)] = static_cast<std::byte>(code); });
    }
}

// --- int4 keys: a scale and a minimum for each channel, both integers in units of one scale ---
struct Range {
    float low, high;
};

void close_int4_keys(const std::byte* tile, size_t dim, std::byte* codes, std::byte* parameters) {
    const auto key = [&](size_t d, size_t t) { return load_element(KvType::kF16, tile, d * kBlockTokens + t); };
    std::vector<Range> ranges(dim);
    int32_t largest = 0;
    float largest_range = 0.0f;
    float largest_low = 0.0f;
    for (size_t d = 0; d < dim; ++d) {
        ranges[d] = {key(d, 0), key(d, 0)};
        for (size_t t = 0; t < kBlockTokens; ++t) {
            ranges[d] = {smaller(ranges[d].low, key(d, t)), larger(ranges[d].high, key(d, t))};
            largest = std::max(largest, magnitude_bits(key(d, t)));
        }
        largest_range = larger(largest_range, ranges[d].high - ranges[d].low);
        largest_low = larger(largest_low, std::fabs(ranges[d].low));
    }
    if (largest == 0 || largest >= Q::kInfinityBits) {  // zeros, or not a number in every place
        store_u16(parameters, 0, largest == 0 ? 0 : 0x7e00);
        return;
    }
    const float scale =
        store_scale(larger(largest_range * Q::kScaleOfRange, largest_low * Q::kScaleOfMinimum), parameters, 0);
    const float unit_code =
        larger(1.0f, smaller(std::ceil(largest_low / (Q::kLargestCode * scale)), Q::kLargestMinimumUnit));
    const float unit = unit_code * scale;
    store_u16(parameters, 1, static_cast<uint16_t>(unit_code));
    for (size_t d = 0; d < dim; ++d) {
        const float minimum_code = larger(smaller(std::floor(ranges[d].low / unit), Q::kLargestCode), -Q::kLargestCode);
        const float minimum = minimum_code * unit;
        const int32_t scale_code =
            round_between((ranges[d].high - minimum) / (Q::kLargestKeyCode * scale), 1.0f, Q::kLargestScaleCode);
        parameters[4 + d] = static_cast<std::byte>(scale_code);
        parameters[4 + dim + d] = static_cast<std::byte>(static_cast<int32_t>(minimum_code));
        const float inverse = 1.0f / (static_cast<float>(scale_code) * scale);
        for (size_t t = 0; t < kBlockTokens; ++t) {
            const int32_t code = round_between((key(d, t) - minimum) * inverse, 0.0f, Q::kLargestKeyCode);
            set_nibble(codes, int4_key_place(d, t), code);
        }
    }
}

// --- int4 values: one scale for a token, the one of a few with the least squared error ---
// Index of the level that is nearest to y.
size_t nearest_level(float y) {
    size_t above = 0;
    for (const float threshold : kValueThresholds) above += std::fabs(y) > threshold ? 1 : 0;
    return y < 0.0f ? 7 - above : 8 + above;
}

void close_int4_values(const std::byte* tile, size_t dim, std::byte* codes, std::byte* parameters) {
    for (size_t t = 0; t < kBlockTokens; ++t) {
        const auto value = [&](size_t i) { return load_element(KvType::kF16, tile, t * dim + i); };
        int32_t largest = 0;
        for (size_t i = 0; i < dim; ++i) largest = std::max(largest, magnitude_bits(value(i)));
        float best_error = std::numeric_limits<float>::infinity();
        float best_scale = 0.0f;
        store_u16(parameters, t, 0);
        if (largest >= Q::kInfinityBits) store_u16(parameters, t, 0x7e00);
        if (largest > 0 && largest < Q::kInfinityBits) {
            for (const float factor : kRangeFactors) {
                std::byte stored[2];
                const float scale = store_scale(std::bit_cast<float>(largest) * factor, stored, 0);
                VirtualLanes errors{};
                for (size_t i = 0; i < dim; ++i) {
                    const float level = kValueLevels[nearest_level(value(i) * (1.0f / scale))];
                    const float error = std::fma(-level, scale, value(i));
                    errors[i % 16] = std::fma(error, error, errors[i % 16]);
                }
                const float error = fold_sum(errors);
                if (!(error < best_error)) continue;
                best_error = error;
                best_scale = scale;
                std::memcpy(parameters + 2 * t, stored, sizeof stored);
            }
        }
        const float inverse = best_scale > 0.0f ? 1.0f / best_scale : 0.0f;
        for (size_t i = 0; i < dim; ++i) {
            const float y = best_scale > 0.0f ? value(i) * inverse : 0.0f;
            set_nibble(codes, int4_value_place(i, t), static_cast<int32_t>(nearest_level(y)));
        }
    }
}

}  // namespace

void reference_close_keys(const std::byte* tile, size_t head_dim, KvType type, std::byte* codes,
                          std::byte* parameters) {
    std::fill_n(codes, key_code_bytes(type, head_dim), std::byte{0});
    std::fill_n(parameters, key_parameter_bytes(type, head_dim), std::byte{0});
    if (type == KvType::kInt8) close_int8_keys(tile, head_dim, codes, parameters);
    if (type == KvType::kInt4) close_int4_keys(tile, head_dim, codes, parameters);
}

void reference_close_values(const std::byte* tile, size_t value_dim, KvType type, std::byte* codes,
                            std::byte* parameters) {
    std::fill_n(codes, value_code_bytes(type, value_dim), std::byte{0});
    std::fill_n(parameters, value_parameter_bytes(type), std::byte{0});
    if (type == KvType::kInt8) close_int8_values(tile, value_dim, codes, parameters);
    if (type == KvType::kInt4) close_int4_values(tile, value_dim, codes, parameters);
}

}  // namespace inlay::kernels
