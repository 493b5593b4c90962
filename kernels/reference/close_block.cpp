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
struct Units {
    float scale;    // of scale codes
    float minimum;  // of minimum codes
};

// Sixteen keys of a channel as 4-bit codes.
struct ChannelCodes {
    float minimum_code;
    float scale_code;
    int32_t codes[kBlockTokens];
    float error;  // squared, summed
};

float scale_code_of(float steps) {
    return static_cast<float>(round_between(steps, 1.0f, Q::kLargestScaleCode));
}

ChannelCodes code_channel(const float* keys, float minimum_code, float scale_code, Units units) {
    ChannelCodes channel = {minimum_code, scale_code, {}, 0.0f};
    const float minimum = minimum_code * units.minimum;
    const float step = scale_code * units.scale;
    VirtualLanes errors{};
    for (size_t t = 0; t < kBlockTokens; ++t) {
        const float above = keys[t] - minimum;
        channel.codes[t] = round_between(above * (1.0f / step), 0.0f, Q::kLargestKeyCode);
        const float error = std::fma(-static_cast<float>(channel.codes[t]), step, above);
        errors[t] = error * error;
    }
    channel.error = fold_sum(errors);
    return channel;
}

// The line through the keys over their codes that has the least squared error, coded.
ChannelCodes refit(const float* keys, const ChannelCodes& channel, Units units) {
    constexpr float kTokens = static_cast<float>(kBlockTokens);
    const float minimum = channel.minimum_code * units.minimum;
    VirtualLanes codes{}, squares{}, above{}, products{};
    for (size_t t = 0; t < kBlockTokens; ++t) {
        codes[t] = static_cast<float>(channel.codes[t]);
        squares[t] = codes[t] * codes[t];
        above[t] = keys[t] - minimum;
        products[t] = codes[t] * above[t];
    }
    const float code_sum = fold_sum(codes);
    const float square_sum = fold_sum(squares);
    const float above_sum = fold_sum(above);
    const float product_sum = fold_sum(products);
    const float spread = kTokens * square_sum - code_sum * code_sum;  // exact
    if (spread == 0.0f) return channel;                               // all codes are the same
    const float slope = (kTokens * product_sum - code_sum * above_sum) / spread;
    const float shift = (above_sum - slope * code_sum) / kTokens;
    const float minimum_code =
        static_cast<float>(round_between((minimum + shift) / units.minimum, -Q::kLargestCode, Q::kLargestCode));
    // The step that is best with this minimum.
    const float lowered = (channel.minimum_code - minimum_code) * units.minimum;
    const float steps = std::fma(lowered, code_sum, product_sum) / (square_sum * units.scale);
    return code_channel(keys, minimum_code, scale_code_of(steps), units);
}

void close_int4_keys(const std::byte* tile, size_t dim, std::byte* codes, std::byte* parameters) {
    struct Channel {
        float keys[kBlockTokens];
        float low, high;
    };
    std::vector<Channel> channels(dim);
    int32_t largest = 0;
    float largest_range = 0.0f;
    float largest_low = 0.0f;
    for (size_t d = 0; d < dim; ++d) {
        Channel& channel = channels[d];
        for (size_t t = 0; t < kBlockTokens; ++t) {
            const float key = load_element(KvType::kF16, tile, d * kBlockTokens + t);
            channel.keys[t] = key;
            channel.low = t == 0 ? key : smaller(channel.low, key);
            channel.high = t == 0 ? key : larger(channel.high, key);
            largest = std::max(largest, magnitude_bits(key));
        }
        largest_range = larger(largest_range, channel.high - channel.low);
        largest_low = larger(largest_low, std::fabs(channel.low));
    }
    if (largest == 0 || largest >= Q::kInfinityBits) {  // zeros, or not a number in every place
        store_u16(parameters, 0, largest == 0 ? 0 : 0x7e00);
        return;
    }
    const float scale =
        store_scale(larger(largest_range * Q::kScaleOfRange, largest_low * Q::kScaleOfMinimum), parameters, 0);
    const float unit_code =
        larger(1.0f, smaller(std::ceil(largest_low / (Q::kLargestCode * scale)), Q::kLargestMinimumUnit));
    const Units units = {scale, unit_code * scale};
    store_u16(parameters, 1, static_cast<uint16_t>(unit_code));
    for (size_t d = 0; d < dim; ++d) {
        const Channel& channel = channels[d];
        const float minimum_code =
            larger(smaller(std::floor(channel.low / units.minimum), Q::kLargestCode), -Q::kLargestCode);
        const float steps = (channel.high - minimum_code * units.minimum) / (Q::kLargestKeyCode * scale);
        const ChannelCodes first = code_channel(channel.keys, minimum_code, scale_code_of(steps), units);
        const ChannelCodes second = refit(channel.keys, first, units);
        const ChannelCodes& best = second.error < first.error ? second : first;
        parameters[4 + d] = static_cast<std::byte>(static_cast<int32_t>(best.scale_code));
        parameters[4 + dim + d] = static_cast<std::byte>(static_cast<int32_t>(best.minimum_code));
        for (size_t t = 0; t < kBlockTokens; ++t) set_nibble(codes, int4_key_place(d, t), best.codes[t]);
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
