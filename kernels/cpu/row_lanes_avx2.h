// What the row-wise kernels and attention need of sixteen lanes beyond lanes_avx2.h. The operations are described in
// row_lanes_portable.h; all three headers compute the same bits.
#pragma once

#include "kernels/cpu/lanes_avx2.h"

namespace inlay::kernels::isa_avx2 {

INLAY_LANES F32x16 swap_neighbours(F32x16 a) {
    return {_mm256_permute_ps(a.lo, 0xb1), _mm256_permute_ps(a.hi, 0xb1)};
}

INLAY_LANES F32x16 load_twice(const float* p) {
    const __m256 all = _mm256_loadu_ps(p);
    return {_mm256_permutevar8x32_ps(all, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3)),
            _mm256_permutevar8x32_ps(all, _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7))};
}

// In two factors, each a normal float. The first product is exact, so a subnormal result is rounded once.
INLAY_LANES F32x16 times_power_of_two(F32x16 a, F32x16 n) {
    const I32x16 power = round_to_int(n);
    const I32x16 half = shift_right<1>(power);
    const I32x16 bias = broadcast(int32_t{127});
    const F32x16 first = float_of(shift_left<23>(half + bias));
    const F32x16 second = float_of(shift_left<23>(power - half + bias));
    return a * first * second;
}

// The first step of a row adds its two registers; the later ones bring halves of different rows side by side, so that
// one operation serves several.
template <typename Combine>
INLAY_LANES void fold_four(const float* rows, float* out, Combine combine) {
    __m256 eight[4];
    for (size_t i = 0; i < 4; ++i) {
        const F32x16 row = load(rows + 16 * i);
        eight[i] = combine({row.lo, row.lo}, {row.hi, row.hi}).lo;
    }
    const F32x16 four = combine({_mm256_permute2f128_ps(eight[0], eight[1], 0x20),  //
                                 _mm256_permute2f128_ps(eight[2], eight[3], 0x20)},
                                {_mm256_permute2f128_ps(eight[0], eight[1], 0x31),  //
                                 _mm256_permute2f128_ps(eight[2], eight[3], 0x31)});
    // 128-bit halves: rows 0 and 2 | rows 1 and 3
    const __m256 two_a = _mm256_shuffle_ps(four.lo, four.hi, 0x44);
    const __m256 two_b = _mm256_shuffle_ps(four.lo, four.hi, 0xee);
    const __m256 two = combine({two_a, two_a}, {two_b, two_b}).lo;
    const __m256 one_a = _mm256_shuffle_ps(two, two, 0x88);
    const __m256 one_b = _mm256_shuffle_ps(two, two, 0xdd);
    const __m256 one = combine({one_a, one_a}, {one_b, one_b}).lo;
    _mm_storeu_ps(out, _mm_unpacklo_ps(_mm256_castps256_ps128(one), _mm256_extractf128_ps(one, 1)));
}

}  // namespace inlay::kernels::isa_avx2
