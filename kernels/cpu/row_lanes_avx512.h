// What the row-wise kernels and attention need of sixteen lanes beyond lanes_avx512.h. The operations are described in
// row_lanes_portable.h; all three headers compute the same bits.
#pragma once

#include "kernels/cpu/lanes_avx512.h"

namespace inlay::kernels::isa_avx512 {

INLAY_LANES F32x16 swap_neighbours(F32x16 a) {
    return {_mm512_permute_ps(a.v, 0xb1)};
}

INLAY_LANES F32x16 load_twice(const float* p) {
    const __m512i spread = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    return {_mm512_permutexvar_ps(spread, _mm512_castps256_ps512(_mm256_loadu_ps(p)))};
}

INLAY_LANES F32x16 times_power_of_two(F32x16 a, F32x16 n) {
    return {_mm512_scalef_ps(a.v, n.v)};
}

// Each of the four steps brings the halves to be combined side by side, so that one operation serves all of `a` to `d`.
template <typename Combine>
INLAY_LANES void fold_four(const float* rows, float* out, Combine combine) {
    const __m512 a = _mm512_loadu_ps(rows);
    const __m512 b = _mm512_loadu_ps(rows + 16);
    const __m512 c = _mm512_loadu_ps(rows + 32);
    const __m512 d = _mm512_loadu_ps(rows + 48);
    const __m512 ab = combine({_mm512_shuffle_f32x4(a, b, 0x44)}, {_mm512_shuffle_f32x4(a, b, 0xee)}).v;
    const __m512 cd = combine({_mm512_shuffle_f32x4(c, d, 0x44)}, {_mm512_shuffle_f32x4(c, d, 0xee)}).v;
    const __m512 four = combine({_mm512_shuffle_f32x4(ab, cd, 0x88)}, {_mm512_shuffle_f32x4(ab, cd, 0xdd)}).v;
    const __m512 two = combine({four}, {_mm512_permute_ps(four, 0x4e)}).v;
    const __m512 one = combine({two}, {_mm512_permute_ps(two, 0xb1)}).v;
    const __m512i heads = _mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);
    _mm_storeu_ps(out, _mm512_castps512_ps128(_mm512_permutexvar_ps(heads, one)));
}

}  // namespace inlay::kernels::isa_avx512
