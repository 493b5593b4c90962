// Constants of quantised keys and values, see docs/numerics.md; the same for the definition and every instruction set.
#pragma once

#include <cstdint>

namespace inlay::kernels {

struct QuantizedKv {
    static constexpr float kSmallestScale = 0x1p-24f;  // of f16: no scale of values other than 0 becomes 0
    static constexpr float kLargestCode = 127.0f;      // of 8 bits

    // Queries of quantised keys and weights of quantised values are integers up to these.
    static constexpr float kLargestQuery = 1023.0f;
    static constexpr float kLargestWeight = 32767.0f;
    static constexpr float kSmallestWeight = 1e-30f;           // a block in which no weight is larger adds nothing
    static constexpr int32_t kSmallestQueryBits = 0x03800000;  // 2^-120: below, a query is 0
    static constexpr int32_t kInfinityBits = 0x7f800000;

    // 4-bit keys: scale codes 1..255 and minimum codes -127..127 in units of 1..220 scale units.
    static constexpr float kLargestKeyCode = 15.0f;
    static constexpr float kLargestScaleCode = 255.0f;
    static constexpr float kLargestMinimumUnit = 220.0f;
    // The scale, of a range and of the largest magnitude of a minimum; a little more than they need, for it is rounded.
    static constexpr float kScaleOfRange = 1.0005f / (kLargestKeyCode * kLargestScaleCode);
    static constexpr float kScaleOfMinimum = 1.0005f / (kLargestCode * kLargestMinimumUnit);
};

// Levels of 4-bit values: those of Lloyd and Max for a normal distribution, the largest made 127; what lies between
// those above 0; and the scales that are tried, times the largest value of a token. Not members, so that no symbol is
// shared by objects for different processors.
constexpr int8_t kValueLevels[16] = {-127, -96, -75, -58, -44, -31, -18, -6, 6, 18, 31, 44, 58, 75, 96, 127};
constexpr float kValueThresholds[7] = {12.0f, 24.5f, 37.5f, 51.0f, 66.5f, 85.5f, 111.5f};
constexpr float kRangeFactors[8] = {1.08f / 127, 1.02f / 127, 0.96f / 127, 0.90f / 127,
                                    0.84f / 127, 0.78f / 127, 0.72f / 127, 0.66f / 127};

}  // namespace inlay::kernels
