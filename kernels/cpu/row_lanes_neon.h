// What the row-wise kernels and attention need of sixteen lanes beyond lanes_neon.h. The operations are described in
// row_lanes_portable.h; all these headers compute the same bits.
#pragma once

#include "kernels/cpu/lanes_neon.h"

namespace inlay::kernels::isa_neon {

INLAY_LANES F32x16 swap_neighbours(F32x16 a) {
    return INLAY_PARTS_OF_1(vrev64q_f32, a);
}

INLAY_LANES F32x16 load_twice(const float* p) {
    const float32x4_t lo = vld1q_f32(p);
    const float32x4_t hi = vld1q_f32(p + 4);
    return {{vzip1q_f32(lo, lo), vzip2q_f32(lo, lo), vzip1q_f32(hi, hi), vzip2q_f32(hi, hi)}};
}

// In two factors, each a normal float. The first product is exact, so a subnormal result is rounded once.
INLAY_LANES F32x16 times_power_of_two(F32x16 a, F32x16 n) {
    const I32x16 power = INLAY_PARTS_OF_1(vcvtnq_s32_f32, n);
    const I32x16 half = shift_right<1>(power);
    const I32x16 bias = broadcast(int32_t{127});
    const F32x16 first = float_of(shift_left<23>(half + bias));
    const F32x16 second = float_of(shift_left<23>(power - half + bias));
    return a * first * second;
}

INLAY_LANES float32x4_t low_halves(float32x4_t a, float32x4_t b) {
    return vcombine_f32(vget_low_f32(a), vget_low_f32(b));
}
INLAY_LANES float32x4_t high_halves(float32x4_t a, float32x4_t b) {
    return vcombine_f32(vget_high_f32(a), vget_high_f32(b));
}

// Each of the four steps brings the halves to be combined side by side, so that one operation serves several rows.
template <typename Combine>
INLAY_LANES void fold_four(const float* rows, float* out, Combine combine) {
    const F32x16 a = load(rows);
    const F32x16 b = load(rows + 16);
    const F32x16 c = load(rows + 32);
    const F32x16 d = load(rows + 48);
    const F32x16 ab = combine(F32x16{{a.part[0], a.part[1], b.part[0], b.part[1]}},
                              F32x16{{a.part[2], a.part[3], b.part[2], b.part[3]}});
    const F32x16 cd = combine(F32x16{{c.part[0], c.part[1], d.part[0], d.part[1]}},
                              F32x16{{c.part[2], c.part[3], d.part[2], d.part[3]}});
    // A row a part.
    const F32x16 four = combine(F32x16{{ab.part[0], ab.part[2], cd.part[0], cd.part[2]}},
                                F32x16{{ab.part[1], ab.part[3], cd.part[1], cd.part[3]}});
    const float32x4_t first_ab = low_halves(four.part[0], four.part[1]);
    const float32x4_t first_cd = low_halves(four.part[2], four.part[3]);
    const float32x4_t second_ab = high_halves(four.part[0], four.part[1]);
    const float32x4_t second_cd = high_halves(four.part[2], four.part[3]);
    // Two rows a part; the other parts repeat these.
    const F32x16 two =
        combine(F32x16{{first_ab, first_cd, first_ab, first_cd}}, F32x16{{second_ab, second_cd, second_ab, second_cd}});
    const float32x4_t even = vuzp1q_f32(two.part[0], two.part[1]);
    const float32x4_t odd = vuzp2q_f32(two.part[0], two.part[1]);
    const F32x16 one = combine(F32x16{{even, even, even, even}}, F32x16{{odd, odd, odd, odd}});
    vst1q_f32(out, one.part[0]);
}

}  // namespace inlay::kernels::isa_neon
