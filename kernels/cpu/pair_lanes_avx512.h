// Lanes of two 16-bit integers on AVX-512. The operations are described in pair_lanes_portable.h; all these headers
// compute the same bits.
#pragma once

#include "kernels/cpu/row_lanes_avx512.h"

namespace inlay::kernels::isa_avx512 {

constexpr size_t kPairTile = 16;
constexpr size_t kPairValueTile = 12;

struct I16x32 {
    __m512i v;
};

INLAY_LANES I16x32 widen_bytes(const std::byte* p) {
    return {_mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
INLAY_LANES I16x32 load_pairs(const void* p) {
    return {_mm512_loadu_si512(p)};
}
INLAY_LANES I16x32 broadcast_pair(const int16_t* p) {
    int32_t pair;
    __builtin_memcpy(&pair, p, sizeof pair);
    return {_mm512_set1_epi32(pair)};
}
INLAY_LANES I16x32 operator+(I16x32 a, I16x32 b) {
    return {_mm512_add_epi16(a.v, b.v)};
}
INLAY_LANES I16x32 operator*(I16x32 a, I16x32 b) {
    return {_mm512_mullo_epi16(a.v, b.v)};
}
template <unsigned n>
INLAY_LANES I16x32 nibbles(I16x32 a) {
    if constexpr (n == 3) return {_mm512_srli_epi16(a.v, 12)};
    if constexpr (n > 0) a.v = _mm512_srli_epi16(a.v, 4 * n);
    return {_mm512_and_si512(a.v, _mm512_set1_epi16(15))};
}
// Twice: the permutation looks at five bits, of which the highest is the next code's.
struct Levels {
    __m512i v;
};
INLAY_LANES Levels load_levels(const int8_t* levels) {
    const __m256i once = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(levels)));
    return {_mm512_broadcast_i64x4(once)};
}
template <unsigned n>
INLAY_LANES I16x32 levels_of(I16x32 a, Levels table) {
    if constexpr (n > 0) a.v = _mm512_srli_epi16(a.v, 4 * n);
    return {_mm512_permutexvar_epi16(a.v, table.v)};
}
INLAY_LANES I32x16 dot_pairs(I32x16 sum, I16x32 a, I16x32 b) {
    return {_mm512_dpwssd_epi32(sum.v, a.v, b.v)};
}

INLAY_LANES I32x16 load_u16(const uint16_t* p) {
    return {_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
INLAY_LANES void store_low_halves(void* p, I32x16 a) {
    _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_cvtepi32_epi16(a.v));
}

template <size_t distance>
INLAY_LANES F32x16 swap_lanes(F32x16 a) {
    if constexpr (distance == 1) return {_mm512_permute_ps(a.v, 0xb1)};
    if constexpr (distance == 2) return {_mm512_permute_ps(a.v, 0x4e)};
    if constexpr (distance == 4) return {_mm512_shuffle_f32x4(a.v, a.v, 0xb1)};
    if constexpr (distance == 8) return {_mm512_shuffle_f32x4(a.v, a.v, 0x4e)};
}

}  // namespace inlay::kernels::isa_avx512
