// Sixteen lanes on AVX2 with FMA and F16C: two registers each. The operations are those of lanes_portable.h, which is
// their description; all three headers compute the same bits.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

// The namespace of everything that is compiled for this instruction set. Objects built with these flags define symbols
// of this namespace only: an inline function of another would reach processors that cannot run it.
#define INLAY_ISA isa_avx2
#define INLAY_ISA_NAME "avx2"
#define INLAY_LANES static inline __attribute__((always_inline))
#define INLAY_REGISTERS 8  // vector registers that the compiler can keep lanes in, as sixteen-lane units

namespace inlay::kernels::isa_avx2 {

struct F32x16 {
    __m256 lo, hi;
};
struct I32x16 {
    __m256i lo, hi;
};
struct Mask16 {
    __m256 lo, hi;  // all bits of a lane set or none
};
struct U8x64 {
    __m256i lo, hi;
};

// --- masks ---
INLAY_LANES Mask16 first_lanes(size_t n) {
    const __m256i count = _mm256_set1_epi32(static_cast<int>(n));
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(count, lane)),
            _mm256_castsi256_ps(_mm256_cmpgt_epi32(count, _mm256_add_epi32(lane, _mm256_set1_epi32(8))))};
}
INLAY_LANES Mask16 operator&(Mask16 a, Mask16 b) {
    return {_mm256_and_ps(a.lo, b.lo), _mm256_and_ps(a.hi, b.hi)};
}
INLAY_LANES Mask16 operator|(Mask16 a, Mask16 b) {
    return {_mm256_or_ps(a.lo, b.lo), _mm256_or_ps(a.hi, b.hi)};
}

// --- float: memory ---
INLAY_LANES F32x16 broadcast(float x) {
    return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
INLAY_LANES F32x16 zero() {
    return {_mm256_setzero_ps(), _mm256_setzero_ps()};
}
INLAY_LANES F32x16 load(const float* p) {
    return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
INLAY_LANES F32x16 load_partial(const float* p, size_t n) {
    const Mask16 m = first_lanes(n);
    return {_mm256_maskload_ps(p, _mm256_castps_si256(m.lo)),
            n > 8 ? _mm256_maskload_ps(p + 8, _mm256_castps_si256(m.hi)) : _mm256_setzero_ps()};
}
INLAY_LANES void store(float* p, F32x16 a) {
    _mm256_storeu_ps(p, a.lo);
    _mm256_storeu_ps(p + 8, a.hi);
}
INLAY_LANES void store_partial(float* p, F32x16 a, size_t n) {
    const Mask16 m = first_lanes(n);
    _mm256_maskstore_ps(p, _mm256_castps_si256(m.lo), a.lo);
    if (n > 8) _mm256_maskstore_ps(p + 8, _mm256_castps_si256(m.hi), a.hi);
}

// --- float: arithmetic ---
INLAY_LANES F32x16 operator+(F32x16 a, F32x16 b) {
    return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
INLAY_LANES F32x16 operator-(F32x16 a, F32x16 b) {
    return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
INLAY_LANES F32x16 operator*(F32x16 a, F32x16 b) {
    return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
INLAY_LANES F32x16 operator/(F32x16 a, F32x16 b) {
    return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
INLAY_LANES F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
    return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
INLAY_LANES F32x16 sqrt(F32x16 a) {
    return {_mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi)};
}
INLAY_LANES F32x16 min(F32x16 a, F32x16 b) {
    return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}
INLAY_LANES F32x16 max(F32x16 a, F32x16 b) {
    return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
INLAY_LANES F32x16 negate(F32x16 a) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_xor_ps(a.lo, sign), _mm256_xor_ps(a.hi, sign)};
}
INLAY_LANES F32x16 abs(F32x16 a) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_andnot_ps(sign, a.lo), _mm256_andnot_ps(sign, a.hi)};
}

INLAY_LANES Mask16 operator<(F32x16 a, F32x16 b) {
    return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)};
}
INLAY_LANES Mask16 operator<=(F32x16 a, F32x16 b) {
    return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LE_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LE_OQ)};
}
INLAY_LANES Mask16 operator>(F32x16 a, F32x16 b) {
    return {_mm256_cmp_ps(a.lo, b.lo, _CMP_GT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_GT_OQ)};
}
INLAY_LANES Mask16 operator==(F32x16 a, F32x16 b) {
    return {_mm256_cmp_ps(a.lo, b.lo, _CMP_EQ_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_EQ_OQ)};
}
INLAY_LANES F32x16 select(Mask16 m, F32x16 a, F32x16 b) {
    return {_mm256_blendv_ps(b.lo, a.lo, m.lo), _mm256_blendv_ps(b.hi, a.hi, m.hi)};
}

// --- integers ---
INLAY_LANES I32x16 broadcast(int32_t x) {
    return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)};
}
INLAY_LANES I32x16 load(const int32_t* p) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 8))};
}
INLAY_LANES void store(int32_t* p, I32x16 a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.lo);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), a.hi);
}
INLAY_LANES I32x16 operator+(I32x16 a, I32x16 b) {
    return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
}
INLAY_LANES I32x16 operator-(I32x16 a, I32x16 b) {
    return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)};
}
INLAY_LANES I32x16 operator&(I32x16 a, I32x16 b) {
    return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)};
}
INLAY_LANES I32x16 operator|(I32x16 a, I32x16 b) {
    return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)};
}
INLAY_LANES I32x16 operator^(I32x16 a, I32x16 b) {
    return {_mm256_xor_si256(a.lo, b.lo), _mm256_xor_si256(a.hi, b.hi)};
}
INLAY_LANES I32x16 max(I32x16 a, I32x16 b) {
    return {_mm256_max_epi32(a.lo, b.lo), _mm256_max_epi32(a.hi, b.hi)};
}
template <unsigned n>
INLAY_LANES I32x16 shift_left(I32x16 a) {
    return {_mm256_slli_epi32(a.lo, n), _mm256_slli_epi32(a.hi, n)};
}
template <unsigned n>
INLAY_LANES I32x16 shift_right(I32x16 a) {
    return {_mm256_srai_epi32(a.lo, n), _mm256_srai_epi32(a.hi, n)};
}
template <unsigned n>
INLAY_LANES I32x16 shift_right_unsigned(I32x16 a) {
    return {_mm256_srli_epi32(a.lo, n), _mm256_srli_epi32(a.hi, n)};
}
INLAY_LANES Mask16 operator==(I32x16 a, I32x16 b) {
    return {_mm256_castsi256_ps(_mm256_cmpeq_epi32(a.lo, b.lo)), _mm256_castsi256_ps(_mm256_cmpeq_epi32(a.hi, b.hi))};
}
INLAY_LANES Mask16 operator>(I32x16 a, I32x16 b) {
    return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(a.lo, b.lo)), _mm256_castsi256_ps(_mm256_cmpgt_epi32(a.hi, b.hi))};
}
INLAY_LANES I32x16 select(Mask16 m, I32x16 a, I32x16 b) {
    return {_mm256_blendv_epi8(b.lo, a.lo, _mm256_castps_si256(m.lo)),
            _mm256_blendv_epi8(b.hi, a.hi, _mm256_castps_si256(m.hi))};
}

// --- conversions ---
INLAY_LANES I32x16 round_to_int(F32x16 a) {
    return {_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi)};
}
INLAY_LANES F32x16 to_float(I32x16 a) {
    return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)};
}
INLAY_LANES I32x16 bits_of(F32x16 a) {
    return {_mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi)};
}
INLAY_LANES F32x16 float_of(I32x16 a) {
    return {_mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi)};
}

INLAY_LANES __m128i load_128(const void* p) {
    return _mm_loadu_si128(static_cast<const __m128i*>(p));
}
INLAY_LANES F32x16 load_f16(const uint16_t* p) {
    return {_mm256_cvtph_ps(load_128(p)), _mm256_cvtph_ps(load_128(p + 8))};
}
INLAY_LANES F32x16 load_f16_partial(const uint16_t* p, size_t n) {
    uint16_t all[16] = {};
    __builtin_memcpy(all, p, (n < 16 ? n : 16) * sizeof(uint16_t));
    return load_f16(all);
}
INLAY_LANES void store_f16(uint16_t* p, F32x16 a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a.lo, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(a.hi, _MM_FROUND_TO_NEAREST_INT));
}
INLAY_LANES void store_f16_partial(uint16_t* p, F32x16 a, size_t n) {
    uint16_t all[16];
    store_f16(all, a);
    __builtin_memcpy(p, all, (n < 16 ? n : 16) * sizeof(uint16_t));
}
INLAY_LANES F32x16 load_bf16(const uint16_t* p) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_128(p)), 16)),
            _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_128(p + 8)), 16))};
}
INLAY_LANES I32x16 load_u8(const uint8_t* p) {
    const __m128i all = load_128(p);
    return {_mm256_cvtepu8_epi32(all), _mm256_cvtepu8_epi32(_mm_unpackhi_epi64(all, all))};
}
INLAY_LANES I32x16 load_s8(const int8_t* p) {
    const __m128i all = load_128(p);
    return {_mm256_cvtepi8_epi32(all), _mm256_cvtepi8_epi32(_mm_unpackhi_epi64(all, all))};
}
INLAY_LANES void store_s8(int8_t* p, I32x16 a) {
    // The low byte of each lane: gathered in each 128-bit half, then the four pieces put in order.
    const __m256i low_bytes = _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,  //
                                               -1, -1, -1, -1, 0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m256i lo = _mm256_shuffle_epi8(a.lo, low_bytes);
    const __m256i hi = _mm256_shuffle_epi8(a.hi, low_bytes);
    const __m128i first = _mm_or_si128(_mm256_castsi256_si128(lo), _mm256_extracti128_si256(lo, 1));
    const __m128i second = _mm_or_si128(_mm256_castsi256_si128(hi), _mm256_extracti128_si256(hi, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_unpacklo_epi64(first, second));
}

// --- folds ---
INLAY_LANES __m128 upper_half_of_four(__m128 a) {
    return _mm_movehl_ps(a, a);
}
INLAY_LANES __m128 second_of_two(__m128 a) {
    return _mm_movehdup_ps(a);
}
INLAY_LANES float fold_sum(F32x16 a) {
    const __m256 eight = _mm256_add_ps(a.lo, a.hi);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, upper_half_of_four(four));
    return _mm_cvtss_f32(_mm_add_ss(two, second_of_two(two)));
}
INLAY_LANES float fold_max(F32x16 a) {
    const __m256 eight = _mm256_max_ps(a.lo, a.hi);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, upper_half_of_four(four));
    return _mm_cvtss_f32(_mm_max_ss(two, second_of_two(two)));
}
INLAY_LANES int32_t fold_sum(I32x16 a) {
    const __m256i eight = _mm256_add_epi32(a.lo, a.hi);
    const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x0e));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0x01)));
}
INLAY_LANES int32_t fold_max(I32x16 a) {
    const __m256i eight = _mm256_max_epi32(a.lo, a.hi);
    const __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    const __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x0e));
    return _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32(two, 0x01)));
}

INLAY_LANES void prefetch(const void* p) {
    _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
}
INLAY_LANES void prefetch_far(const void* p) {
    _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1);
}

// --- bytes: sixteen rows of four neighbouring columns ---
INLAY_LANES U8x64 load_bytes(const uint8_t* p) {
    return {_mm256_load_si256(reinterpret_cast<const __m256i*>(p)),
            _mm256_load_si256(reinterpret_cast<const __m256i*>(p + 32))};
}
INLAY_LANES void store_bytes(uint8_t* p, U8x64 a) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(p), a.lo);
    _mm256_store_si256(reinterpret_cast<__m256i*>(p + 32), a.hi);
}
INLAY_LANES U8x64 operator|(U8x64 a, U8x64 b) {
    return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)};
}
template <int shift, uint8_t keep>
INLAY_LANES __m256i take_bits(__m256i a) {
    if constexpr (shift > 0) a = _mm256_srli_epi16(a, shift);
    if constexpr (shift < 0) a = _mm256_slli_epi16(a, -shift);
    return _mm256_and_si256(a, _mm256_set1_epi8(static_cast<char>(keep)));
}
// Bits `shift` and up of each byte that `keep` names, moved down to bit 0; a negative shift moves up.
template <int shift, uint8_t keep>
INLAY_LANES U8x64 take_bits(U8x64 a) {
    return {take_bits<shift, keep>(a.lo), take_bits<shift, keep>(a.hi)};
}
// `value` in the bytes whose bit is set in the 32-bit mask.
template <uint8_t value>
INLAY_LANES __m256i bytes_where(const uint8_t* mask) {
    int32_t m;
    __builtin_memcpy(&m, mask, sizeof m);
    const __m256i spread = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,  //
                                            2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
    const __m256i bit = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201u));
    const __m256i own = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(m), spread), bit);
    return _mm256_and_si256(_mm256_cmpeq_epi8(own, bit), _mm256_set1_epi8(static_cast<char>(value)));
}
// Adds `value` to the bytes whose bit is set in the 64-bit mask.
template <uint8_t value>
INLAY_LANES U8x64 add_where(U8x64 a, const uint8_t* mask) {
    return {_mm256_add_epi8(a.lo, bytes_where<value>(mask)), _mm256_add_epi8(a.hi, bytes_where<value>(mask + 4))};
}
// Column c (0..3) of the sixteen rows.
template <unsigned c>
INLAY_LANES I32x16 column_of(U8x64 a) {
    const __m256i byte = _mm256_set1_epi32(255);
    return {_mm256_and_si256(_mm256_srli_epi32(a.lo, 8 * c), byte),
            _mm256_and_si256(_mm256_srli_epi32(a.hi, 8 * c), byte)};
}

// Sum of (weight - zero) * x over the columns of one sub-block, for sixteen rows: start, add four columns at a time,
// total. The weights are below 2^bits; `zero` is 0 or a power of two up to 128. Bytes stay unsigned, so the sum starts
// from -zero * sum(x); what is given is -128 * sum(x). Products are first summed in 16 bits, two columns to a sum: at
// most 2 * 127 * (2^bits - 1) a time, so that some such sums may be added up before they must be widened: 8 up to 4
// bits, 4 with 5 bits, 2 with 6. With 8 bits not even one fits; then |w - 128| is multiplied with x of its sign, at
// most 2 * 127 * 128, and the zero point is gone.
template <unsigned bits, int zero>
struct ByteDot {
    __m256i lo, hi;              // 32-bit sums
    __m256i pairs_lo, pairs_hi;  // 16-bit sums not yet widened
    unsigned pending;            // how many products these hold
};
template <unsigned bits>
inline constexpr unsigned kPairSums = bits <= 4   ? 8
                                      : bits == 5 ? 4
                                      : bits == 6 ? 2
                                                  : 1;

template <unsigned bits, int zero>
INLAY_LANES void start(ByteDot<bits, zero>& dot, int32_t minus_128_sum) {
    static_assert(bits <= 6 || zero == 128);
    dot.lo = dot.hi = dot.pairs_lo = dot.pairs_hi = _mm256_setzero_si256();
    if constexpr (bits <= 6 && zero != 0)
        dot.lo = dot.hi = _mm256_set1_epi32(minus_128_sum >> __builtin_ctz(128 / zero));
    dot.pending = 0;
}
template <unsigned bits, int zero>
INLAY_LANES void widen(ByteDot<bits, zero>& dot) {
    const __m256i ones = _mm256_set1_epi16(1);
    dot.lo = _mm256_add_epi32(dot.lo, _mm256_madd_epi16(dot.pairs_lo, ones));
    dot.hi = _mm256_add_epi32(dot.hi, _mm256_madd_epi16(dot.pairs_hi, ones));
}
template <unsigned bits>
INLAY_LANES __m256i multiply_pairs(__m256i weights, __m256i x) {
    if constexpr (bits <= 6) return _mm256_maddubs_epi16(weights, x);
    const __m256i w = _mm256_xor_si256(weights, _mm256_set1_epi8(-128));  // weight - 128, signed
    return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
}
template <unsigned bits, int zero>
INLAY_LANES void add(ByteDot<bits, zero>& dot, U8x64 weights, const int8_t* x) {
    int32_t four;
    __builtin_memcpy(&four, x, sizeof four);
    const __m256i xs = _mm256_set1_epi32(four);
    dot.pairs_lo = _mm256_add_epi16(dot.pairs_lo, multiply_pairs<bits>(weights.lo, xs));
    dot.pairs_hi = _mm256_add_epi16(dot.pairs_hi, multiply_pairs<bits>(weights.hi, xs));
    if (++dot.pending == kPairSums<bits>) {
        widen(dot);
        dot.pairs_lo = dot.pairs_hi = _mm256_setzero_si256();
        dot.pending = 0;
    }
}
template <unsigned bits, int zero>
INLAY_LANES I32x16 total(ByteDot<bits, zero>& dot) {
    if (dot.pending != 0) widen(dot);
    return {dot.lo, dot.hi};
}

}  // namespace inlay::kernels::isa_avx2
