// The exponential function that every softmax and activation uses: plain binary32 arithmetic, so that no libm decides a
// bit. The vector form (kernels/cpu/exp.inl.h) performs the same operations in the same order.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/reference/exp_constants.h"

namespace inlay::kernels {

// At most 1 ulp from the true value everywhere; exp(0) = 1, exp(-inf) = 0, exp(inf) = inf, exp(NaN) = NaN.
inline float reference_exp(float x) {
    using C = ExpConstants;
    // Written so that a NaN passes both bounds.
    x = C::kLowest > x ? C::kLowest : x;
    x = C::kHighest < x ? C::kHighest : x;
    const float shifted = std::fma(x, C::kLog2E, C::kRounder);
    const float n = shifted - C::kRounder;
    float r = std::fma(n, -C::kLn2High, x);
    r = std::fma(n, -C::kLn2Low, r);
    float p = std::fma(C::kC6, r, C::kC5);
    p = std::fma(p, r, C::kC4);
    p = std::fma(p, r, C::kC3);
    p = std::fma(p, r, C::kC2);
    p = std::fma(p, r, 1.0f);
    p = std::fma(p, r, 1.0f);
    // 2^n in two factors: the first product is exact, so a subnormal result is rounded once.
    const int32_t power = static_cast<int32_t>(std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(C::kRounder));
    const int32_t half = power >> 1;
    const float first = std::bit_cast<float>(static_cast<uint32_t>(half + 127) << 23);
    const float second = std::bit_cast<float>(static_cast<uint32_t>(power - half + 127) << 23);
    return p * first * second;
}

}  // namespace inlay::kernels
