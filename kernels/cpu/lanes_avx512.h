// Sixteen lanes on AVX-512 (F, BW, DQ, VL, VNNI): one register each. The operations are those of lanes_portable.h,
// which is their description; all three headers compute the same bits.
#pragma once

// GCC 12 warns about the deliberately undefined operands inside its own intrinsics (its bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#else
#include <immintrin.h>
#endif

#include <cstddef>
#include <cstdint>

// The namespace of everything that is compiled for this instruction set. Objects built with these flags define symbols
// of this namespace only: an inline function of another would reach processors that cannot run it.
#define INLAY_ISA isa_avx512
#define INLAY_ISA_NAME "avx512"
#define INLAY_LANES static inline __attribute__((always_inline))
#define INLAY_REGISTERS 32  // vector registers that the compiler can keep lanes in, as sixteen-lane units

namespace inlay::kernels::isa_avx512 {

struct F32x16 {
    __m512 v;
};
struct I32x16 {
    __m512i v;
};
struct Mask16 {
    __mmask16 v;
};
struct U8x64 {
    __m512i v;
};

// --- masks ---
INLAY_LANES Mask16 first_lanes(size_t n) {
    return {static_cast<__mmask16>(n >= 16 ? 0xffffu : (1u << n) - 1u)};
}
INLAY_LANES Mask16 operator&(Mask16 a, Mask16 b) {
    return {static_cast<__mmask16>(a.v & b.v)};
}
INLAY_LANES Mask16 operator|(Mask16 a, Mask16 b) {
    return {static_cast<__mmask16>(a.v | b.v)};
}

// --- float: memory ---
INLAY_LANES F32x16 broadcast(float x) {
    return {_mm512_set1_ps(x)};
}
INLAY_LANES F32x16 zero() {
    return {_mm512_setzero_ps()};
}
INLAY_LANES F32x16 load(const float* p) {
    return {_mm512_loadu_ps(p)};
}
INLAY_LANES F32x16 load_partial(const float* p, size_t n) {
    return {_mm512_maskz_loadu_ps(first_lanes(n).v, p)};
}
INLAY_LANES void store(float* p, F32x16 a) {
    _mm512_storeu_ps(p, a.v);
}
INLAY_LANES void store_partial(float* p, F32x16 a, size_t n) {
    _mm512_mask_storeu_ps(p, first_lanes(n).v, a.v);
}

// --- float: arithmetic ---
INLAY_LANES F32x16 operator+(F32x16 a, F32x16 b) {
    return {_mm512_add_ps(a.v, b.v)};
}
INLAY_LANES F32x16 operator-(F32x16 a, F32x16 b) {
    return {_mm512_sub_ps(a.v, b.v)};
}
INLAY_LANES F32x16 operator*(F32x16 a, F32x16 b) {
    return {_mm512_mul_ps(a.v, b.v)};
}
INLAY_LANES F32x16 operator/(F32x16 a, F32x16 b) {
    return {_mm512_div_ps(a.v, b.v)};
}
INLAY_LANES F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
    return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
INLAY_LANES F32x16 sqrt(F32x16 a) {
    return {_mm512_sqrt_ps(a.v)};
}
INLAY_LANES F32x16 min(F32x16 a, F32x16 b) {
    return {_mm512_min_ps(a.v, b.v)};
}
INLAY_LANES F32x16 max(F32x16 a, F32x16 b) {
    return {_mm512_max_ps(a.v, b.v)};
}
INLAY_LANES F32x16 negate(F32x16 a) {
    return {_mm512_xor_ps(a.v, _mm512_set1_ps(-0.0f))};
}
INLAY_LANES F32x16 abs(F32x16 a) {
    return {_mm512_abs_ps(a.v)};
}

INLAY_LANES Mask16 operator<(F32x16 a, F32x16 b) {
    return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)};
}
INLAY_LANES Mask16 operator<=(F32x16 a, F32x16 b) {
    return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)};
}
INLAY_LANES Mask16 operator>(F32x16 a, F32x16 b) {
    return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ)};
}
INLAY_LANES Mask16 operator==(F32x16 a, F32x16 b) {
    return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)};
}
INLAY_LANES F32x16 select(Mask16 m, F32x16 a, F32x16 b) {
    return {_mm512_mask_blend_ps(m.v, b.v, a.v)};
}

// --- integers ---
INLAY_LANES I32x16 broadcast(int32_t x) {
    return {_mm512_set1_epi32(x)};
}
INLAY_LANES I32x16 load(const int32_t* p) {
    return {_mm512_loadu_si512(p)};
}
INLAY_LANES void store(int32_t* p, I32x16 a) {
    _mm512_storeu_si512(p, a.v);
}
INLAY_LANES I32x16 operator+(I32x16 a, I32x16 b) {
    return {_mm512_add_epi32(a.v, b.v)};
}
INLAY_LANES I32x16 operator-(I32x16 a, I32x16 b) {
    return {_mm512_sub_epi32(a.v, b.v)};
}
INLAY_LANES I32x16 operator&(I32x16 a, I32x16 b) {
    return {_mm512_and_si512(a.v, b.v)};
}
INLAY_LANES I32x16 operator|(I32x16 a, I32x16 b) {
    return {_mm512_or_si512(a.v, b.v)};
}
INLAY_LANES I32x16 operator^(I32x16 a, I32x16 b) {
    return {_mm512_xor_si512(a.v, b.v)};
}
INLAY_LANES I32x16 max(I32x16 a, I32x16 b) {
    return {_mm512_max_epi32(a.v, b.v)};
}
template <unsigned n>
INLAY_LANES I32x16 shift_left(I32x16 a) {
    return {_mm512_slli_epi32(a.v, n)};
}
template <unsigned n>
INLAY_LANES I32x16 shift_right(I32x16 a) {
    return {_mm512_srai_epi32(a.v, n)};
}
template <unsigned n>
INLAY_LANES I32x16 shift_right_unsigned(I32x16 a) {
    return {_mm512_srli_epi32(a.v, n)};
}
INLAY_LANES Mask16 operator==(I32x16 a, I32x16 b) {
    return {_mm512_cmpeq_epi32_mask(a.v, b.v)};
}
INLAY_LANES Mask16 operator>(I32x16 a, I32x16 b) {
    return {_mm512_cmpgt_epi32_mask(a.v, b.v)};
}
INLAY_LANES I32x16 select(Mask16 m, I32x16 a, I32x16 b) {
    return {_mm512_mask_blend_epi32(m.v, b.v, a.v)};
}

// --- conversions ---
INLAY_LANES I32x16 round_to_int(F32x16 a) {
    return {_mm512_cvtps_epi32(a.v)};
}
INLAY_LANES F32x16 to_float(I32x16 a) {
    return {_mm512_cvtepi32_ps(a.v)};
}
INLAY_LANES I32x16 bits_of(F32x16 a) {
    return {_mm512_castps_si512(a.v)};
}
INLAY_LANES F32x16 float_of(I32x16 a) {
    return {_mm512_castsi512_ps(a.v)};
}

INLAY_LANES F32x16 load_f16(const uint16_t* p) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
INLAY_LANES F32x16 load_f16_partial(const uint16_t* p, size_t n) {
    return {_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first_lanes(n).v, p))};
}
INLAY_LANES void store_f16(uint16_t* p, F32x16 a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}
INLAY_LANES void store_f16_partial(uint16_t* p, F32x16 a, size_t n) {
    _mm256_mask_storeu_epi16(p, first_lanes(n).v, _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}
INLAY_LANES F32x16 load_bf16(const uint16_t* p) {
    const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16))};
}
INLAY_LANES I32x16 load_u8(const uint8_t* p) {
    return {_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
INLAY_LANES I32x16 load_s8(const int8_t* p) {
    return {_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
INLAY_LANES void store_s8(int8_t* p, I32x16 a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a.v));
}

// --- folds ---
INLAY_LANES __m128 upper_half_of_four(__m128 a) {
    return _mm_movehl_ps(a, a);
}
INLAY_LANES __m128 second_of_two(__m128 a) {
    return _mm_movehdup_ps(a);
}
INLAY_LANES float fold_sum(F32x16 a) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, upper_half_of_four(four));
    return _mm_cvtss_f32(_mm_add_ss(two, second_of_two(two)));
}
INLAY_LANES float fold_max(F32x16 a) {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, upper_half_of_four(four));
    return _mm_cvtss_f32(_mm_max_ss(two, second_of_two(two)));
}
INLAY_LANES int32_t fold_sum(I32x16 a) {
    return _mm512_reduce_add_epi32(a.v);
}
INLAY_LANES int32_t fold_max(I32x16 a) {
    return _mm512_reduce_max_epi32(a.v);
}

INLAY_LANES void prefetch(const void* p) {
    _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
}
INLAY_LANES void prefetch_far(const void* p) {
    _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1);
}

// --- bytes: sixteen rows of four neighbouring columns ---
INLAY_LANES U8x64 load_bytes(const uint8_t* p) {
    return {_mm512_load_si512(p)};
}
INLAY_LANES void store_bytes(uint8_t* p, U8x64 a) {
    _mm512_store_si512(p, a.v);
}
INLAY_LANES U8x64 operator|(U8x64 a, U8x64 b) {
    return {_mm512_or_si512(a.v, b.v)};
}
// Bits `shift` and up of each byte that `keep` names, moved down to bit 0; a negative shift moves up.
template <int shift, uint8_t keep>
INLAY_LANES U8x64 take_bits(U8x64 a) {
    __m512i moved = a.v;
    if constexpr (shift > 0) moved = _mm512_srli_epi16(a.v, static_cast<unsigned>(shift));
    if constexpr (shift < 0) moved = _mm512_slli_epi16(a.v, static_cast<unsigned>(-shift));
    return {_mm512_and_si512(moved, _mm512_set1_epi8(static_cast<char>(keep)))};
}
// Adds `value` to the bytes whose bit is set in the 64-bit mask.
template <uint8_t value>
INLAY_LANES U8x64 add_where(U8x64 a, const uint8_t* mask) {
    uint64_t m;
    __builtin_memcpy(&m, mask, sizeof m);
    return {_mm512_mask_add_epi8(a.v, m, a.v, _mm512_set1_epi8(static_cast<char>(value)))};
}
// Column c (0..3) of the sixteen rows.
template <unsigned c>
INLAY_LANES I32x16 column_of(U8x64 a) {
    return {_mm512_and_si512(_mm512_srli_epi32(a.v, 8 * c), _mm512_set1_epi32(255))};
}

// Sum of (weight - zero) * x over the columns of one sub-block, for sixteen rows: start, add four columns at a time,
// total. The weights are below 2^bits; `zero` is 0 or a power of two up to 128. Bytes stay unsigned, so the sum starts
// from -zero * sum(x); what is given is -128 * sum(x).
template <unsigned bits, int zero>
struct ByteDot {
    __m512i sum;
};
template <unsigned bits, int zero>
INLAY_LANES void start(ByteDot<bits, zero>& dot, int32_t minus_128_sum) {
    if constexpr (zero == 0) dot.sum = _mm512_setzero_si512();
    if constexpr (zero != 0) dot.sum = _mm512_srai_epi32(_mm512_set1_epi32(minus_128_sum), __builtin_ctz(128 / zero));
}
template <unsigned bits, int zero>
INLAY_LANES void add(ByteDot<bits, zero>& dot, U8x64 weights, const int8_t* x) {
    int32_t four;
    __builtin_memcpy(&four, x, sizeof four);
    dot.sum = _mm512_dpbusd_epi32(dot.sum, weights.v, _mm512_set1_epi32(four));
}
template <unsigned bits, int zero>
INLAY_LANES I32x16 total(const ByteDot<bits, zero>& dot) {
    return {dot.sum};
}

}  // namespace inlay::kernels::isa_avx512
