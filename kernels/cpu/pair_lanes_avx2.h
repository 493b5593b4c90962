// Lanes of two 16-bit integers on AVX2. The operations are described in pair_lanes_portable.h; all these headers
// compute the same bits.
#pragma once

#include "kernels/cpu/row_lanes_avx2.h"

namespace inlay::kernels::isa_avx2 {

constexpr size_t kPairTile = 4;
constexpr size_t kPairValueTile = 4;

struct I16x32 {
    __m256i lo, hi;
};

INLAY_LANES I16x32 widen_bytes(const std::byte* p) {
    return {_mm256_cvtepi8_epi16(load_128(p)), _mm256_cvtepi8_epi16(load_128(p + 16))};
}
INLAY_LANES I16x32 load_pairs(const void* p) {
    return {_mm256_loadu_si256(static_cast<const __m256i*>(p)), _mm256_loadu_si256(static_cast<const __m256i*>(p) + 1)};
}
INLAY_LANES I16x32 broadcast_pair(const int16_t* p) {
    int32_t pair;
    __builtin_memcpy(&pair, p, sizeof pair);
    const __m256i all = _mm256_set1_epi32(pair);
    return {all, all};
}
INLAY_LANES I16x32 operator+(I16x32 a, I16x32 b) {
    return {_mm256_add_epi16(a.lo, b.lo), _mm256_add_epi16(a.hi, b.hi)};
}
INLAY_LANES I16x32 operator*(I16x32 a, I16x32 b) {
    return {_mm256_mullo_epi16(a.lo, b.lo), _mm256_mullo_epi16(a.hi, b.hi)};
}
template <unsigned n>
INLAY_LANES __m256i nibbles(__m256i a) {
    if constexpr (n > 0) a = _mm256_srli_epi16(a, 4 * n);
    return n == 3 ? a : _mm256_and_si256(a, _mm256_set1_epi16(15));
}
template <unsigned n>
INLAY_LANES I16x32 nibbles(I16x32 a) {
    return {nibbles<n>(a.lo), nibbles<n>(a.hi)};
}
// Above -127, so that the byte shuffle puts 0 into the upper byte of each half, whose index is 0.
struct Levels {
    __m256i v;
};
INLAY_LANES Levels load_levels(const int8_t* levels) {
    const __m128i above = _mm_add_epi8(load_128(levels), _mm_set1_epi8(127));
    return {_mm256_broadcastsi128_si256(above)};
}
template <unsigned n>
INLAY_LANES __m256i levels_of(__m256i a, Levels table) {
    return _mm256_sub_epi16(_mm256_shuffle_epi8(table.v, nibbles<n>(a)), _mm256_set1_epi16(127));
}
template <unsigned n>
INLAY_LANES I16x32 levels_of(I16x32 a, Levels table) {
    return {levels_of<n>(a.lo, table), levels_of<n>(a.hi, table)};
}
INLAY_LANES I32x16 dot_pairs(I32x16 sum, I16x32 a, I16x32 b) {
    return {_mm256_add_epi32(sum.lo, _mm256_madd_epi16(a.lo, b.lo)),
            _mm256_add_epi32(sum.hi, _mm256_madd_epi16(a.hi, b.hi))};
}

INLAY_LANES I32x16 load_u16(const uint16_t* p) {
    return {_mm256_cvtepu16_epi32(load_128(p)), _mm256_cvtepu16_epi32(load_128(p + 8))};
}
INLAY_LANES void store_low_halves(void* p, I32x16 a) {
    const __m256i low = _mm256_set1_epi32(0xffff);
    const __m256i packed = _mm256_packus_epi32(_mm256_and_si256(a.lo, low), _mm256_and_si256(a.hi, low));
    _mm256_storeu_si256(static_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xd8));
}

template <size_t distance>
INLAY_LANES F32x16 swap_lanes(F32x16 a) {
    if constexpr (distance == 1) return {_mm256_permute_ps(a.lo, 0xb1), _mm256_permute_ps(a.hi, 0xb1)};
    if constexpr (distance == 2) return {_mm256_permute_ps(a.lo, 0x4e), _mm256_permute_ps(a.hi, 0x4e)};
    if constexpr (distance == 4)
        return {_mm256_permute2f128_ps(a.lo, a.lo, 0x01), _mm256_permute2f128_ps(a.hi, a.hi, 0x01)};
    if constexpr (distance == 8) return {a.hi, a.lo};
}

}  // namespace inlay::kernels::isa_avx2
