// What the row-wise kernels and attention need of sixteen lanes beyond lanes_portable.h; this header describes it for
// the other instruction sets.
#pragma once

#include "kernels/cpu/lanes_portable.h"

namespace inlay::kernels::isa_portable {

// Lanes 2i and 2i + 1 exchanged.
INLAY_LANES F32x16 swap_neighbours(F32x16 a) {
    float in[16];
    float out[16];
    store(in, a);
    for (size_t i = 0; i < 16; ++i) out[i] = in[i ^ 1];
    return load(out);
}

// Eight floats, each in two neighbouring lanes.
INLAY_LANES F32x16 load_twice(const float* p) {
    float out[16];
    for (size_t i = 0; i < 16; ++i) out[i] = p[i / 2];
    return load(out);
}

// a * 2^n, rounded once, for integral n in -151..129 and |a| in 1/2..2; with NaN for n or a: NaN.
// In two factors, each a normal float. The first product is exact, so a subnormal result is rounded once.
INLAY_LANES F32x16 times_power_of_two(F32x16 a, F32x16 n) {
    const F32x16 rounder = broadcast(0x1.8p+23f);  // leaves the integer in the low bits
    const I32x16 power = bits_of(n + rounder) - bits_of(rounder);
    const I32x16 half = shift_right<1>(power);
    const I32x16 bias = broadcast(int32_t{127});
    const F32x16 first = float_of(shift_left<23>(half + bias));
    const F32x16 second = float_of(shift_left<23>(power - half + bias));
    return a * first * second;
}

// Folds each of four rows of sixteen floats in halves: combine(l[i], l[i + 8]) for i below 8, and so on. `combine`
// works on whole F32x16 lane by lane.
template <typename Combine>
INLAY_LANES void fold_four(const float* rows, float* out, Combine combine) {
    for (size_t row = 0; row < 4; ++row) {
        float lanes[32] = {};
        for (size_t i = 0; i < 16; ++i) lanes[i] = rows[row * 16 + i];
        for (size_t half = 8; half > 0; half /= 2) store(lanes, combine(load(lanes), load(lanes + half)));
        out[row] = lanes[0];
    }
}

}  // namespace inlay::kernels::isa_portable
