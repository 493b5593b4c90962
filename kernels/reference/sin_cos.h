// Sine and cosine of a binary32 angle, for rotary positions: binary64 multiplications and additions only, so every
// processor computes the same bits and no libm decides one. Rope calls this once per row and pair, never per head.
#pragma once

#include <bit>
#include <cstdint>

namespace inlay::kernels {

struct SinCos {
    float sin;
    float cos;
};

// Within 0.501 ulp for |angle| < 2^28; NaN for an infinite angle.
inline SinCos reference_sin_cos(float angle) {
    // pi / 2 in three parts. The upper two have 25 bits, so their products with an integer below 2^28 are exact, and so
    // are the first two subtractions: both sides are multiples of the part's last bit and the difference is small.
    constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
    constexpr double kHalfPiHigh = 0x1.921fb5p+0;
    constexpr double kHalfPiMiddle = 0x1.110b46p-26;
    constexpr double kHalfPiLow = 0x1.1a62633145c07p-54;
    constexpr double kRounder = 0x1.8p+52;  // added to a number, leaves its nearest integer in the low bits

    const double x = static_cast<double>(angle);
    const double shifted = x * kTwoOverPi + kRounder;
    const double n = shifted - kRounder;
    const double r = ((x - n * kHalfPiHigh) - n * kHalfPiMiddle) - n * kHalfPiLow;

    // Taylor series on |r| <= pi / 4: the first omitted terms are below 2^-43 of the results.
    const double z = r * r;
    double s = 1.0 / 6227020800.0;
    s = s * z - 1.0 / 39916800.0;
    s = s * z + 1.0 / 362880.0;
    s = s * z - 1.0 / 5040.0;
    s = s * z + 1.0 / 120.0;
    s = s * z - 1.0 / 6.0;
    s = s * (z * r) + r;
    double c = -1.0 / 87178291200.0;
    c = c * z + 1.0 / 479001600.0;
    c = c * z - 1.0 / 3628800.0;
    c = c * z + 1.0 / 40320.0;
    c = c * z - 1.0 / 720.0;
    c = c * z + 1.0 / 24.0;
    c = c * z - 0.5;
    c = c * z + 1.0;

    const uint64_t quadrant = std::bit_cast<uint64_t>(shifted) & 3;
    const double sin = quadrant & 1 ? c : s;
    const double cos = quadrant & 1 ? s : c;
    return {static_cast<float>(quadrant & 2 ? -sin : sin), static_cast<float>((quadrant + 1) & 2 ? -cos : cos)};
}

}  // namespace inlay::kernels
