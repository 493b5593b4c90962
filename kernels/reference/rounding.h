// Rounding to integers and largest magnitudes, as the instructions of x86 do both.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace inlay::kernels {

// Ties to even; INT32_MIN for NaN and for what does not fit.
inline int32_t round_to_int(float x) {
    if (!(x >= -0x1p31f && x < 0x1p31f)) return INT32_MIN;
    const float floor = std::floor(x);
    const float rest = x - floor;  // exact
    const auto below = static_cast<int64_t>(floor);
    const bool up = rest > 0.5f || (rest == 0.5f && below % 2 != 0);
    return static_cast<int32_t>(up ? below + 1 : below);
}

// Of floats without sign the larger bits are the larger value, and NaN is larger than all.
inline int32_t magnitude_bits(float x) {
    return std::bit_cast<int32_t>(x) & 0x7fffffff;
}

}  // namespace inlay::kernels
