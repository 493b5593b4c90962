// The numbers behind the exponential function, shared by its scalar and its vector form (reference/exp.h,
// cpu/exp.inl.h).
#pragma once

namespace inlay::kernels {

// e^x = 2^n * e^r with n = round(x / ln 2), |r| <= ln 2 / 2.
struct ExpConstants {
    static constexpr float kLowest = -104.0f;        // e^-104 rounds to zero
    static constexpr float kHighest = 89.0f;         // e^89 rounds to infinity
    static constexpr float kLog2E = 0x1.715476p+0f;  // 1 / ln 2
    static constexpr float kRounder = 0x1.8p+23f;  // added to a small float, leaves its nearest integer in the low bits
    static constexpr float kLn2High = 0x1.62e4p-1f;    // 15 bits: n times it is exact
    static constexpr float kLn2Low = 0x1.7f7d1cp-20f;  // ln 2 - kLn2High
    // e^r = 1 + r + r^2 (c2 + c3 r + ... + c6 r^4), minimax in the relative error (2^-27.7 with these roundings).
    static constexpr float kC2 = 0x1.fffffcp-2f;
    static constexpr float kC3 = 0x1.55549p-3f;
    static constexpr float kC4 = 0x1.5558f4p-5f;
    static constexpr float kC5 = 0x1.123a22p-7f;
    static constexpr float kC6 = 0x1.6a23bp-10f;
};

}  // namespace inlay::kernels
