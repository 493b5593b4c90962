// Lanes of two 16-bit integers on NEON. The operations are described in pair_lanes_portable.h; all these headers
// compute the same bits.
#pragma once

#include "kernels/cpu/row_lanes_neon.h"

namespace inlay::kernels::isa_neon {

constexpr size_t kPairTile = 4;
constexpr size_t kPairValueTile = 4;

// The halves of lanes 0..7 and 8..15 apart, as loads bring them: products are then added up lane by lane.
struct I16x32 {
    int16x8_t even[2];
    int16x8_t odd[2];
};

INLAY_LANES I16x32 widen_bytes(const std::byte* p) {
    const int8x16x2_t all = vld2q_s8(reinterpret_cast<const int8_t*>(p));
    return {{vmovl_s8(vget_low_s8(all.val[0])), vmovl_high_s8(all.val[0])},
            {vmovl_s8(vget_low_s8(all.val[1])), vmovl_high_s8(all.val[1])}};
}
INLAY_LANES I16x32 load_pairs(const void* p) {
    const int16x8x2_t lo = vld2q_s16(static_cast<const int16_t*>(p));
    const int16x8x2_t hi = vld2q_s16(static_cast<const int16_t*>(p) + 16);
    return {{lo.val[0], hi.val[0]}, {lo.val[1], hi.val[1]}};
}
INLAY_LANES I16x32 broadcast_pair(const int16_t* p) {
    const int16x8_t even = vld1q_dup_s16(p);
    const int16x8_t odd = vld1q_dup_s16(p + 1);
    return {{even, even}, {odd, odd}};
}
INLAY_LANES I16x32 operator+(I16x32 a, I16x32 b) {
    return {{vaddq_s16(a.even[0], b.even[0]), vaddq_s16(a.even[1], b.even[1])},
            {vaddq_s16(a.odd[0], b.odd[0]), vaddq_s16(a.odd[1], b.odd[1])}};
}
INLAY_LANES I16x32 operator*(I16x32 a, I16x32 b) {
    return {{vmulq_s16(a.even[0], b.even[0]), vmulq_s16(a.even[1], b.even[1])},
            {vmulq_s16(a.odd[0], b.odd[0]), vmulq_s16(a.odd[1], b.odd[1])}};
}
template <unsigned n>
INLAY_LANES int16x8_t nibbles(int16x8_t a) {
    uint16x8_t bits = vreinterpretq_u16_s16(a);
    if constexpr (n > 0) bits = vshrq_n_u16(bits, 4 * n);
    return vreinterpretq_s16_u16(n == 3 ? bits : vandq_u16(bits, vdupq_n_u16(15)));
}
template <unsigned n>
INLAY_LANES I16x32 nibbles(I16x32 a) {
    return {{nibbles<n>(a.even[0]), nibbles<n>(a.even[1])}, {nibbles<n>(a.odd[0]), nibbles<n>(a.odd[1])}};
}
// Above -127, so that the table puts 0 into the upper byte of each half, whose index is 0.
struct Levels {
    uint8x16_t v;
};
INLAY_LANES Levels load_levels(const int8_t* levels) {
    return {vaddq_u8(vreinterpretq_u8_s8(vld1q_s8(levels)), vdupq_n_u8(127))};
}
template <unsigned n>
INLAY_LANES int16x8_t levels_of(int16x8_t a, Levels table) {
    const uint8x16_t above = vqtbl1q_u8(table.v, vreinterpretq_u8_s16(nibbles<n>(a)));
    return vsubq_s16(vreinterpretq_s16_u8(above), vdupq_n_s16(127));
}
template <unsigned n>
INLAY_LANES I16x32 levels_of(I16x32 a, Levels table) {
    return {{levels_of<n>(a.even[0], table), levels_of<n>(a.even[1], table)},
            {levels_of<n>(a.odd[0], table), levels_of<n>(a.odd[1], table)}};
}
INLAY_LANES I32x16 dot_pairs(I32x16 sum, I16x32 a, I16x32 b) {
    I32x16 r;
    for (size_t i = 0; i < 2; ++i) {
        const int32x4_t low = vmlal_s16(sum.part[2 * i], vget_low_s16(a.even[i]), vget_low_s16(b.even[i]));
        const int32x4_t high = vmlal_high_s16(sum.part[2 * i + 1], a.even[i], b.even[i]);
        r.part[2 * i] = vmlal_s16(low, vget_low_s16(a.odd[i]), vget_low_s16(b.odd[i]));
        r.part[2 * i + 1] = vmlal_high_s16(high, a.odd[i], b.odd[i]);
    }
    return r;
}

INLAY_LANES I32x16 load_u16(const uint16_t* p) {
    const uint16x8_t lo = vld1q_u16(p);
    const uint16x8_t hi = vld1q_u16(p + 8);
    return {{vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(lo))), vreinterpretq_s32_u32(vmovl_high_u16(lo)),
             vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(hi))), vreinterpretq_s32_u32(vmovl_high_u16(hi))}};
}
INLAY_LANES void store_low_halves(void* p, I32x16 a) {
    int16_t* halves = static_cast<int16_t*>(p);
    vst1q_s16(halves, vmovn_high_s32(vmovn_s32(a.part[0]), a.part[1]));
    vst1q_s16(halves + 8, vmovn_high_s32(vmovn_s32(a.part[2]), a.part[3]));
}

template <size_t distance>
INLAY_LANES F32x16 swap_lanes(F32x16 a) {
    if constexpr (distance == 1) return INLAY_PARTS_OF_1(vrev64q_f32, a);
    if constexpr (distance == 2)
        return {{vextq_f32(a.part[0], a.part[0], 2), vextq_f32(a.part[1], a.part[1], 2),
                 vextq_f32(a.part[2], a.part[2], 2), vextq_f32(a.part[3], a.part[3], 2)}};
    if constexpr (distance == 4) return {{a.part[1], a.part[0], a.part[3], a.part[2]}};
    if constexpr (distance == 8) return {{a.part[2], a.part[3], a.part[0], a.part[1]}};
}

}  // namespace inlay::kernels::isa_neon
