// IEEE operations on single values that a baseline processor lacks, computed exactly in plain C++ without branches so
// that compilers turn loops over them into vector code: fused multiply-add, half precision, rounding to integer. In the
// namespace of whoever includes it (INLAY_ISA), since the including object may be built with instruction set flags.
#include <cstddef>
#include <cstdint>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace inlay::kernels::INLAY_ISA {

static inline uint32_t f32_bits(float x) {
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline float f32_of_bits(uint32_t bits) {
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

// a * b + c, rounded once. The product is exact in double. Its sum with c is rounded to odd: where TwoSum finds an
// error and the last bit is even, the sum moves one step towards the exact value. 53 bits are more than 24 + 2, so that
// rounding an odd-rounded double to float rounds the exact value (Boldo and Melquiond, "Emulation of FMA and correctly
// rounded sums: proved algorithms using rounding to odd", 2008).
static inline float exact_fma(float a, float b, float c) {
#if defined(__FMA__) || defined(__FP_FAST_FMAF)
    return __builtin_fmaf(a, b, c);
#else
    const double product = static_cast<double>(a) * static_cast<double>(b);
    const double addend = static_cast<double>(c);
    const double sum = product + addend;
    const double back = sum - product;
    const double error = (product - (sum - back)) + (addend - back);  // NaN if the sum is not finite: compares false
    int64_t bits;
    __builtin_memcpy(&bits, &sum, sizeof bits);
    // One step away from zero if error and sum have the same sign, else towards it.
    const int64_t up = (error > 0.0 ? 1 : 0) - (error < 0.0 ? 1 : 0);
    const int64_t step = sum < 0.0 ? -up : up;
    bits += step & ((bits & 1) - 1);
    double odd;
    __builtin_memcpy(&odd, &bits, sizeof odd);
    return static_cast<float>(odd);
#endif
}

#if defined(__SSE2__)
// The same steps, two at a time. Comparisons give -1 where they hold.
static inline __m128 exact_fma_of_two(__m128d a, __m128d b, __m128d c) {
    const __m128d product = _mm_mul_pd(a, b);
    const __m128d sum = _mm_add_pd(product, c);
    const __m128d back = _mm_sub_pd(sum, product);
    const __m128d error = _mm_add_pd(_mm_sub_pd(product, _mm_sub_pd(sum, back)), _mm_sub_pd(c, back));
    const __m128i above = _mm_castpd_si128(_mm_cmpgt_pd(error, _mm_setzero_pd()));
    const __m128i below = _mm_castpd_si128(_mm_cmplt_pd(error, _mm_setzero_pd()));
    const __m128i negative = _mm_castpd_si128(_mm_cmplt_pd(sum, _mm_setzero_pd()));
    const __m128i up = _mm_sub_epi64(below, above);
    const __m128i step = _mm_sub_epi64(_mm_xor_si128(up, negative), negative);
    const __m128i bits = _mm_castpd_si128(sum);
    const __m128i one = _mm_set1_epi64x(1);
    const __m128i even = _mm_sub_epi64(_mm_and_si128(bits, one), one);
    return _mm_cvtpd_ps(_mm_castsi128_pd(_mm_add_epi64(bits, _mm_and_si128(step, even))));
}

static inline void exact_fma_of_four(const float* a, const float* b, const float* c, float* out) {
    const __m128 x = _mm_loadu_ps(a);
    const __m128 y = _mm_loadu_ps(b);
    const __m128 z = _mm_loadu_ps(c);
    const __m128 first = exact_fma_of_two(_mm_cvtps_pd(x), _mm_cvtps_pd(y), _mm_cvtps_pd(z));
    const __m128 second = exact_fma_of_two(_mm_cvtps_pd(_mm_movehl_ps(x, x)), _mm_cvtps_pd(_mm_movehl_ps(y, y)),
                                           _mm_cvtps_pd(_mm_movehl_ps(z, z)));
    _mm_storeu_ps(out, _mm_movelh_ps(first, second));
}
#endif

// Nearest even; INT32_MIN for NaN and for what does not fit.
static inline int32_t round_to_int(float x) {
    const bool fits = x >= -2147483648.0f && x < 2147483648.0f;
    const float value = fits ? x : 0.0f;
    // From 2^23 on every float is an integer; below, adding and taking away 2^23 rounds in the default mode.
    const float magic = __builtin_copysignf(8388608.0f, value);
    const float rounded = __builtin_fabsf(value) < 8388608.0f ? (value + magic) - magic : value;
    return fits ? static_cast<int32_t>(rounded) : INT32_MIN;
}

static inline float f16_to_f32(uint16_t half) {
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
    const uint32_t rest = static_cast<uint32_t>(half & 0x7fffu) << 13;  // exponent and fraction at their places in f32
    // A factor of 2^112 moves the exponent's bias from 15 to 127, for subnormals too; infinity and NaN keep a full
    // exponent.
    const uint32_t finite = f32_bits(f32_of_bits(rest) * 0x1p112f);
    const uint32_t quiet = rest > 0x0f800000u ? 0x00400000u : 0u;
    const uint32_t special = 0x7f800000u | (rest & 0x007fffffu) | quiet;
    return f32_of_bits(sign | (rest >= 0x0f800000u ? special : finite));
}

static inline uint16_t f32_to_f16(float x) {
    const uint32_t bits = f32_bits(x);
    const uint32_t magnitude = bits & 0x7fffffffu;
    // Normal halves: half a unit of the last place kept, less one if that place is even, then cut.
    const uint32_t normal = (magnitude - 0x38000000u + 0x0fffu + ((magnitude >> 13) & 1u)) >> 13;
    // Subnormal halves: adding 0.5 leaves the value in units of 2^-24 at the end of the fraction, rounded by the
    // addition.
    const uint32_t subnormal = f32_bits(f32_of_bits(magnitude) + 0.5f) - 0x3f000000u;
    const uint32_t infinite = 0x7c00u;
    const uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x03ffu);
    uint32_t half = magnitude < 0x38800000u ? subnormal : normal;
    half = magnitude >= 0x477ff000u ? infinite : half;
    half = magnitude > 0x7f800000u ? nan : half;
    return static_cast<uint16_t>(half | ((bits >> 16) & 0x8000u));
}

}  // namespace inlay::kernels::INLAY_ISA
