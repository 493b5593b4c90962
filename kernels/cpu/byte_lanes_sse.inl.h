// The operations of byte_lanes_plain.inl.h on four registers of SSSE3, which every x86-64-v2 processor has.
#include <tmmintrin.h>

namespace inlay::kernels::INLAY_ISA {

struct U8x64 {
    __m128i part[4];  // four rows each
};

#define INLAY_EACH_PART(expression)                           \
    do {                                                      \
        _Pragma("GCC unroll 4") for (int i = 0; i < 4; ++i) { \
            a.part[i] = expression;                           \
        }                                                     \
        return a;                                             \
    } while (false)

INLAY_LANES U8x64 load_bytes(const uint8_t* p) {
    U8x64 a;
    INLAY_EACH_PART(_mm_load_si128(reinterpret_cast<const __m128i*>(p) + i));
}
INLAY_LANES void store_bytes(uint8_t* p, U8x64 a) {
    for (int i = 0; i < 4; ++i) _mm_store_si128(reinterpret_cast<__m128i*>(p) + i, a.part[i]);
}
INLAY_LANES U8x64 operator|(U8x64 a, U8x64 b) {
    INLAY_EACH_PART(_mm_or_si128(a.part[i], b.part[i]));
}

template <int shift, uint8_t keep>
INLAY_LANES U8x64 take_bits(U8x64 a) {
    const __m128i kept = _mm_set1_epi8(static_cast<char>(keep));
    if constexpr (shift > 0) {
        INLAY_EACH_PART(_mm_and_si128(_mm_srli_epi16(a.part[i], shift), kept));
    } else {
        INLAY_EACH_PART(_mm_and_si128(_mm_slli_epi16(a.part[i], -shift), kept));
    }
}

template <uint8_t value>
INLAY_LANES __m128i bytes_where(const uint8_t* mask) {
    const __m128i spread = _mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    const __m128i bit = _mm_set1_epi64x(static_cast<long long>(0x8040201008040201u));
    const __m128i sixteen_bits = _mm_cvtsi32_si128(mask[0] | mask[1] << 8);
    const __m128i own = _mm_and_si128(_mm_shuffle_epi8(sixteen_bits, spread), bit);
    return _mm_and_si128(_mm_cmpeq_epi8(own, bit), _mm_set1_epi8(static_cast<char>(value)));
}
template <uint8_t value>
INLAY_LANES U8x64 add_where(U8x64 a, const uint8_t* mask) {
    INLAY_EACH_PART(_mm_add_epi8(a.part[i], bytes_where<value>(mask + 2 * i)));
}

template <unsigned c>
INLAY_LANES I32x16 column_of(U8x64 a) {
    I32x16 r;
    for (int i = 0; i < 4; ++i) {
        const __m128i column = _mm_and_si128(_mm_srli_epi32(a.part[i], 8 * c), _mm_set1_epi32(255));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(r.lane + 4 * i), column);
    }
    return r;
}

// As on AVX2: 16-bit sums of pairs are added up as long as they fit, see lanes_avx2.h.
template <unsigned bits, int zero>
struct ByteDot {
    __m128i sum[4];
    __m128i pairs[4];
    unsigned pending;
};
template <unsigned bits>
inline constexpr unsigned kPairSums = bits <= 4   ? 8
                                      : bits == 5 ? 4
                                      : bits == 6 ? 2
                                                  : 1;

template <unsigned bits, int zero>
INLAY_LANES void start(ByteDot<bits, zero>& dot, int32_t minus_128_sum) {
    static_assert(bits <= 6 || zero == 128);
    int32_t first = 0;
    if constexpr (bits <= 6 && zero != 0) first = minus_128_sum / (128 / zero);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        dot.sum[i] = _mm_set1_epi32(first);
        dot.pairs[i] = _mm_setzero_si128();
    }
    dot.pending = 0;
}
template <unsigned bits, int zero>
INLAY_LANES void widen(ByteDot<bits, zero>& dot) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        dot.sum[i] = _mm_add_epi32(dot.sum[i], _mm_madd_epi16(dot.pairs[i], _mm_set1_epi16(1)));
        dot.pairs[i] = _mm_setzero_si128();
    }
    dot.pending = 0;
}
template <unsigned bits>
INLAY_LANES __m128i multiply_pairs(__m128i weights, __m128i x) {
    if constexpr (bits <= 6) return _mm_maddubs_epi16(weights, x);
    const __m128i w = _mm_xor_si128(weights, _mm_set1_epi8(-128));  // weight - 128, signed
    return _mm_maddubs_epi16(_mm_abs_epi8(w), _mm_sign_epi8(x, w));
}
template <unsigned bits, int zero>
INLAY_LANES void add(ByteDot<bits, zero>& dot, const U8x64& weights, const int8_t* x) {
    int32_t four;
    __builtin_memcpy(&four, x, sizeof four);
    const __m128i xs = _mm_set1_epi32(four);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) dot.pairs[i] = _mm_add_epi16(dot.pairs[i], multiply_pairs<bits>(weights.part[i], xs));
    if (++dot.pending == kPairSums<bits>) widen(dot);
}
template <unsigned bits, int zero>
INLAY_LANES I32x16 total(ByteDot<bits, zero>& dot) {
    if (dot.pending != 0) widen(dot);
    I32x16 r;
    for (int i = 0; i < 4; ++i) _mm_storeu_si128(reinterpret_cast<__m128i*>(r.lane + 4 * i), dot.sum[i]);
    return r;
}

#undef INLAY_EACH_PART

}  // namespace inlay::kernels::INLAY_ISA
