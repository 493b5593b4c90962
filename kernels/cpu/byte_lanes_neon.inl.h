// The operations of byte_lanes_plain.inl.h on four registers of NEON, with the dot products of ARMv8.2.
namespace inlay::kernels::INLAY_ISA {

INLAY_LANES U8x64 load_bytes(const uint8_t* p) {
    return {{vld1q_u8(p), vld1q_u8(p + 16), vld1q_u8(p + 32), vld1q_u8(p + 48)}};
}
INLAY_LANES void store_bytes(uint8_t* p, U8x64 a) {
    vst1q_u8(p, a.part[0]);
    vst1q_u8(p + 16, a.part[1]);
    vst1q_u8(p + 32, a.part[2]);
    vst1q_u8(p + 48, a.part[3]);
}
INLAY_LANES U8x64 operator|(U8x64 a, U8x64 b) {
    return INLAY_PARTS_OF_2(vorrq_u8, a, b);
}

template <int shift, uint8_t keep>
INLAY_LANES uint8x16_t take_bits(uint8x16_t a) {
    if constexpr (shift > 0) a = vshrq_n_u8(a, shift);
    if constexpr (shift < 0) a = vshlq_n_u8(a, -shift);
    return vandq_u8(a, vdupq_n_u8(keep));
}
template <int shift, uint8_t keep>
INLAY_LANES U8x64 take_bits(U8x64 a) {
    return {{take_bits<shift, keep>(a.part[0]), take_bits<shift, keep>(a.part[1]), take_bits<shift, keep>(a.part[2]),
             take_bits<shift, keep>(a.part[3])}};
}

// `value` in the sixteen bytes whose bit is set in the mask.
template <uint8_t value>
INLAY_LANES uint8x16_t bytes_where(const uint8_t* mask) {
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
    const uint8x16_t spread = vcombine_u8(vdup_n_u8(mask[0]), vdup_n_u8(mask[1]));
    return vandq_u8(vtstq_u8(spread, bit), vdupq_n_u8(value));
}
template <uint8_t value>
INLAY_LANES U8x64 add_where(U8x64 a, const uint8_t* mask) {
    return {{vaddq_u8(a.part[0], bytes_where<value>(mask)), vaddq_u8(a.part[1], bytes_where<value>(mask + 2)),
             vaddq_u8(a.part[2], bytes_where<value>(mask + 4)), vaddq_u8(a.part[3], bytes_where<value>(mask + 6))}};
}

template <unsigned c>
INLAY_LANES int32x4_t column_of(uint8x16_t a) {
    uint32x4_t rows = vreinterpretq_u32_u8(a);
    if constexpr (c != 0) rows = vshrq_n_u32(rows, 8 * c);
    return vreinterpretq_s32_u32(vandq_u32(rows, vdupq_n_u32(255)));
}
template <unsigned c>
INLAY_LANES I32x16 column_of(U8x64 a) {
    return INLAY_PARTS_OF_1(column_of<c>, a);
}

// The instruction multiplies signed bytes. Weights of up to 7 bits are the same number with and without a sign, so the
// sum starts from -zero * sum(x); those of 8 bits become signed by taking away 128, and with that their zero point.
template <unsigned bits, int zero>
struct ByteDot {
    int32x4_t sum[4];
};
template <unsigned bits, int zero>
INLAY_LANES void start(ByteDot<bits, zero>& dot, int32_t minus_128_sum) {
    static_assert(bits <= 7 || zero == 128);
    int32_t first = 0;
    if constexpr (bits <= 7 && zero != 0) first = minus_128_sum / (128 / zero);
    dot.sum[0] = dot.sum[1] = dot.sum[2] = dot.sum[3] = vdupq_n_s32(first);
}
template <unsigned bits>
INLAY_LANES int8x16_t signed_weights(uint8x16_t weights) {
    if constexpr (bits <= 7) return vreinterpretq_s8_u8(weights);
    return vreinterpretq_s8_u8(veorq_u8(weights, vdupq_n_u8(128)));
}
template <unsigned bits, int zero>
INLAY_LANES void add(ByteDot<bits, zero>& dot, U8x64 weights, const int8_t* x) {
    int32_t four;
    __builtin_memcpy(&four, x, sizeof four);
    const int8x16_t xs = vreinterpretq_s8_s32(vdupq_n_s32(four));
    dot.sum[0] = vdotq_s32(dot.sum[0], signed_weights<bits>(weights.part[0]), xs);
    dot.sum[1] = vdotq_s32(dot.sum[1], signed_weights<bits>(weights.part[1]), xs);
    dot.sum[2] = vdotq_s32(dot.sum[2], signed_weights<bits>(weights.part[2]), xs);
    dot.sum[3] = vdotq_s32(dot.sum[3], signed_weights<bits>(weights.part[3]), xs);
}
template <unsigned bits, int zero>
INLAY_LANES I32x16 total(const ByteDot<bits, zero>& dot) {
    return {{dot.sum[0], dot.sum[1], dot.sum[2], dot.sum[3]}};
}

}  // namespace inlay::kernels::INLAY_ISA
