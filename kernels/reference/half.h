// 16-bit floats in software: IEEE binary16 and bfloat16, to f32 and back with round to nearest, ties to even. These
// define the bits that processors with conversion instructions must produce too. Not-a-number keeps its sign and upper
// payload and becomes quiet.
#pragma once

#include <bit>
#include <cstdint>

namespace inlay {

constexpr float half_to_float(uint16_t half) {
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
    const uint32_t exponent = half >> 10 & 0x1f;
    const uint32_t fraction = half & 0x3ff;
    if (exponent == 0x1f) {  // infinity, or not a number
        const uint32_t quiet = fraction == 0 ? 0 : 0x00400000;
        return std::bit_cast<float>(sign | 0x7f800000 | quiet | fraction << 13);
    }
    if (exponent == 0) {  // zero or subnormal: fraction * 2^-24, exact
        const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
        return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
    }
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

// `value >> shift`, rounded to nearest, ties to even. 0 < shift < 32.
constexpr uint32_t shift_right_to_even(uint32_t value, uint32_t shift) {
    const uint32_t kept = value >> shift;
    const uint32_t rest = value & ((uint32_t{1} << shift) - 1);
    const uint32_t tie = uint32_t{1} << (shift - 1);
    return kept + (rest > tie || (rest == tie && (kept & 1)) ? 1 : 0);
}

constexpr uint16_t float_to_half(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t sign = bits >> 16 & 0x8000;
    const uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x47800000) return static_cast<uint16_t>(sign | 0x7c00);  // 2^16 and above
    const uint32_t exponent = magnitude >> 23;
    if (exponent < 102) return static_cast<uint16_t>(sign);  // below 2^-25, half the smallest subnormal
    if (exponent < 113) {                                    // a subnormal half: units of 2^-24
        const uint32_t significand = (magnitude & 0x7fffff) | 0x800000;
        return static_cast<uint16_t>(sign | shift_right_to_even(significand, 126 - exponent));
    }
    // A carry out of the fraction moves into the exponent, up to infinity: the layouts agree.
    return static_cast<uint16_t>(sign | shift_right_to_even(magnitude - (uint32_t{112} << 23), 13));
}

constexpr float bfloat16_to_float(uint16_t bits) {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

constexpr uint16_t float_to_bfloat16(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
    return static_cast<uint16_t>(shift_right_to_even(bits, 16));
}

}  // namespace inlay
