// Sixteen lanes on NEON with the dot products of ARMv8.2: four registers each. The operations are those of
// lanes_portable.h, which is their description; all these headers compute the same bits.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

// The namespace of everything that is compiled for this instruction set. Objects built with these flags define symbols
// of this namespace only: an inline function of another would reach processors that cannot run it.
#define INLAY_ISA isa_neon
#define INLAY_ISA_NAME "neon"
#define INLAY_LANES static inline __attribute__((always_inline))
#define INLAY_REGISTERS 8  // vector registers that the compiler can keep lanes in, as sixteen-lane units

namespace inlay::kernels::isa_neon {

struct F32x16 {
    float32x4_t part[4];
};
struct I32x16 {
    int32x4_t part[4];
};
struct Mask16 {
    uint32x4_t part[4];  // all bits of a lane set or none
};
struct U8x64 {
    uint8x16_t part[4];  // four rows each
};

// An operation on each of the four parts.
#define INLAY_PARTS_OF_1(f, a)                                             \
    {                                                                      \
        { f((a).part[0]), f((a).part[1]), f((a).part[2]), f((a).part[3]) } \
    }
#define INLAY_PARTS_OF_2(f, a, b)                                                                  \
    {                                                                                              \
        {                                                                                          \
            f((a).part[0], (b).part[0]), f((a).part[1], (b).part[1]), f((a).part[2], (b).part[2]), \
                f((a).part[3], (b).part[3])                                                        \
        }                                                                                          \
    }
#define INLAY_PARTS_OF_3(f, a, b, c)                                                               \
    {                                                                                              \
        {                                                                                          \
            f((a).part[0], (b).part[0], (c).part[0]), f((a).part[1], (b).part[1], (c).part[1]),    \
                f((a).part[2], (b).part[2], (c).part[2]), f((a).part[3], (b).part[3], (c).part[3]) \
        }                                                                                          \
    }

// --- masks ---
INLAY_LANES Mask16 first_lanes(size_t n) {
    const uint32_t first[4] = {0, 1, 2, 3};
    const uint32x4_t lane = vld1q_u32(first);
    const uint32x4_t count = vdupq_n_u32(static_cast<uint32_t>(n));
    return {{vcgtq_u32(count, lane), vcgtq_u32(count, vaddq_u32(lane, vdupq_n_u32(4))),
             vcgtq_u32(count, vaddq_u32(lane, vdupq_n_u32(8))), vcgtq_u32(count, vaddq_u32(lane, vdupq_n_u32(12)))}};
}
INLAY_LANES Mask16 operator&(Mask16 a, Mask16 b) {
    return INLAY_PARTS_OF_2(vandq_u32, a, b);
}
INLAY_LANES Mask16 operator|(Mask16 a, Mask16 b) {
    return INLAY_PARTS_OF_2(vorrq_u32, a, b);
}

// --- float: memory ---
INLAY_LANES F32x16 broadcast(float x) {
    const float32x4_t four = vdupq_n_f32(x);
    return {{four, four, four, four}};
}
INLAY_LANES F32x16 zero() {
    return broadcast(0.0f);
}
INLAY_LANES F32x16 load(const float* p) {
    return {{vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)}};
}
INLAY_LANES F32x16 load_partial(const float* p, size_t n) {
    if (n >= 16) return load(p);
    float all[16] = {};
    __builtin_memcpy(all, p, n * sizeof(float));
    return load(all);
}
INLAY_LANES void store(float* p, F32x16 a) {
    vst1q_f32(p, a.part[0]);
    vst1q_f32(p + 4, a.part[1]);
    vst1q_f32(p + 8, a.part[2]);
    vst1q_f32(p + 12, a.part[3]);
}
INLAY_LANES void store_partial(float* p, F32x16 a, size_t n) {
    if (n >= 16) return store(p, a);
    float all[16];
    store(all, a);
    __builtin_memcpy(p, all, n * sizeof(float));
}

// --- float: arithmetic ---
INLAY_LANES F32x16 operator+(F32x16 a, F32x16 b) {
    return INLAY_PARTS_OF_2(vaddq_f32, a, b);
}
INLAY_LANES F32x16 operator-(F32x16 a, F32x16 b) {
    return INLAY_PARTS_OF_2(vsubq_f32, a, b);
}
INLAY_LANES F32x16 operator*(F32x16 a, F32x16 b) {
    return INLAY_PARTS_OF_2(vmulq_f32, a, b);
}
INLAY_LANES F32x16 operator/(F32x16 a, F32x16 b) {
    return INLAY_PARTS_OF_2(vdivq_f32, a, b);
}
INLAY_LANES F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
    return INLAY_PARTS_OF_3(vfmaq_f32, c, a, b);
}
INLAY_LANES F32x16 sqrt(F32x16 a) {
    return INLAY_PARTS_OF_1(vsqrtq_f32, a);
}
INLAY_LANES F32x16 negate(F32x16 a) {
    return INLAY_PARTS_OF_1(vnegq_f32, a);
}
INLAY_LANES F32x16 abs(F32x16 a) {
    return INLAY_PARTS_OF_1(vabsq_f32, a);
}

INLAY_LANES Mask16 operator<(F32x16 a, F32x16 b) {
    return INLAY_PARTS_OF_2(vcltq_f32, a, b);
}
INLAY_LANES Mask16 operator<=(F32x16 a, F32x16 b) {
    return INLAY_PARTS_OF_2(vcleq_f32, a, b);
}
INLAY_LANES Mask16 operator>(F32x16 a, F32x16 b) {
    return INLAY_PARTS_OF_2(vcgtq_f32, a, b);
}
INLAY_LANES Mask16 operator==(F32x16 a, F32x16 b) {
    return INLAY_PARTS_OF_2(vceqq_f32, a, b);
}
INLAY_LANES F32x16 select(Mask16 m, F32x16 a, F32x16 b) {
    return INLAY_PARTS_OF_3(vbslq_f32, m, a, b);
}
// Not FMIN and FMAX, which treat NaN and zeros of both signs in another way than the definition.
INLAY_LANES F32x16 min(F32x16 a, F32x16 b) {
    return select(a < b, a, b);
}
INLAY_LANES F32x16 max(F32x16 a, F32x16 b) {
    return select(a > b, a, b);
}

// --- integers ---
INLAY_LANES I32x16 broadcast(int32_t x) {
    const int32x4_t four = vdupq_n_s32(x);
    return {{four, four, four, four}};
}
INLAY_LANES I32x16 load(const int32_t* p) {
    return {{vld1q_s32(p), vld1q_s32(p + 4), vld1q_s32(p + 8), vld1q_s32(p + 12)}};
}
INLAY_LANES void store(int32_t* p, I32x16 a) {
    vst1q_s32(p, a.part[0]);
    vst1q_s32(p + 4, a.part[1]);
    vst1q_s32(p + 8, a.part[2]);
    vst1q_s32(p + 12, a.part[3]);
}
INLAY_LANES I32x16 operator+(I32x16 a, I32x16 b) {
    return INLAY_PARTS_OF_2(vaddq_s32, a, b);
}
INLAY_LANES I32x16 operator-(I32x16 a, I32x16 b) {
    return INLAY_PARTS_OF_2(vsubq_s32, a, b);
}
INLAY_LANES I32x16 operator&(I32x16 a, I32x16 b) {
    return INLAY_PARTS_OF_2(vandq_s32, a, b);
}
INLAY_LANES I32x16 operator|(I32x16 a, I32x16 b) {
    return INLAY_PARTS_OF_2(vorrq_s32, a, b);
}
INLAY_LANES I32x16 operator^(I32x16 a, I32x16 b) {
    return INLAY_PARTS_OF_2(veorq_s32, a, b);
}
INLAY_LANES I32x16 max(I32x16 a, I32x16 b) {
    return INLAY_PARTS_OF_2(vmaxq_s32, a, b);
}
template <unsigned n>
INLAY_LANES I32x16 shift_left(I32x16 a) {
    return {
        {vshlq_n_s32(a.part[0], n), vshlq_n_s32(a.part[1], n), vshlq_n_s32(a.part[2], n), vshlq_n_s32(a.part[3], n)}};
}
template <unsigned n>
INLAY_LANES I32x16 shift_right(I32x16 a) {
    return {
        {vshrq_n_s32(a.part[0], n), vshrq_n_s32(a.part[1], n), vshrq_n_s32(a.part[2], n), vshrq_n_s32(a.part[3], n)}};
}
template <unsigned n>
INLAY_LANES int32x4_t shift_right_unsigned(int32x4_t a) {
    return vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a), n));
}
template <unsigned n>
INLAY_LANES I32x16 shift_right_unsigned(I32x16 a) {
    return INLAY_PARTS_OF_1(shift_right_unsigned<n>, a);
}
INLAY_LANES Mask16 operator==(I32x16 a, I32x16 b) {
    return INLAY_PARTS_OF_2(vceqq_s32, a, b);
}
INLAY_LANES Mask16 operator>(I32x16 a, I32x16 b) {
    return INLAY_PARTS_OF_2(vcgtq_s32, a, b);
}
INLAY_LANES I32x16 select(Mask16 m, I32x16 a, I32x16 b) {
    return INLAY_PARTS_OF_3(vbslq_s32, m, a, b);
}

// --- conversions ---
// The instruction gives 0 for NaN and the largest integer for what is above all.
INLAY_LANES int32x4_t round_to_int(float32x4_t a) {
    const uint32x4_t is_below_end = vcltq_f32(a, vdupq_n_f32(0x1p31f));
    return vbslq_s32(is_below_end, vcvtnq_s32_f32(a), vdupq_n_s32(INT32_MIN));
}
INLAY_LANES I32x16 round_to_int(F32x16 a) {
    return INLAY_PARTS_OF_1(round_to_int, a);
}
INLAY_LANES F32x16 to_float(I32x16 a) {
    return INLAY_PARTS_OF_1(vcvtq_f32_s32, a);
}
INLAY_LANES I32x16 bits_of(F32x16 a) {
    return INLAY_PARTS_OF_1(vreinterpretq_s32_f32, a);
}
INLAY_LANES F32x16 float_of(I32x16 a) {
    return INLAY_PARTS_OF_1(vreinterpretq_f32_s32, a);
}

INLAY_LANES float32x4_t load_four_f16(const uint16_t* p) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}
INLAY_LANES F32x16 load_f16(const uint16_t* p) {
    return {{load_four_f16(p), load_four_f16(p + 4), load_four_f16(p + 8), load_four_f16(p + 12)}};
}
INLAY_LANES F32x16 load_f16_partial(const uint16_t* p, size_t n) {
    if (n >= 16) return load_f16(p);
    uint16_t all[16] = {};
    __builtin_memcpy(all, p, n * sizeof(uint16_t));
    return load_f16(all);
}
INLAY_LANES void store_f16(uint16_t* p, F32x16 a) {
    vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(a.part[0])));
    vst1_u16(p + 4, vreinterpret_u16_f16(vcvt_f16_f32(a.part[1])));
    vst1_u16(p + 8, vreinterpret_u16_f16(vcvt_f16_f32(a.part[2])));
    vst1_u16(p + 12, vreinterpret_u16_f16(vcvt_f16_f32(a.part[3])));
}
INLAY_LANES void store_f16_partial(uint16_t* p, F32x16 a, size_t n) {
    if (n >= 16) return store_f16(p, a);
    uint16_t all[16];
    store_f16(all, a);
    __builtin_memcpy(p, all, n * sizeof(uint16_t));
}
INLAY_LANES float32x4_t load_four_bf16(const uint16_t* p) {
    return vreinterpretq_f32_u32(vshlq_n_u32(vmovl_u16(vld1_u16(p)), 16));
}
INLAY_LANES F32x16 load_bf16(const uint16_t* p) {
    return {{load_four_bf16(p), load_four_bf16(p + 4), load_four_bf16(p + 8), load_four_bf16(p + 12)}};
}
INLAY_LANES I32x16 load_u8(const uint8_t* p) {
    const uint8x16_t all = vld1q_u8(p);
    const uint16x8_t lo = vmovl_u8(vget_low_u8(all));
    const uint16x8_t hi = vmovl_high_u8(all);
    return {{vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(lo))), vreinterpretq_s32_u32(vmovl_high_u16(lo)),
             vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(hi))), vreinterpretq_s32_u32(vmovl_high_u16(hi))}};
}
INLAY_LANES I32x16 load_s8(const int8_t* p) {
    const int8x16_t all = vld1q_s8(p);
    const int16x8_t lo = vmovl_s8(vget_low_s8(all));
    const int16x8_t hi = vmovl_high_s8(all);
    return {{vmovl_s16(vget_low_s16(lo)), vmovl_high_s16(lo), vmovl_s16(vget_low_s16(hi)), vmovl_high_s16(hi)}};
}
INLAY_LANES void store_s8(int8_t* p, I32x16 a) {
    const int16x8_t lo = vmovn_high_s32(vmovn_s32(a.part[0]), a.part[1]);
    const int16x8_t hi = vmovn_high_s32(vmovn_s32(a.part[2]), a.part[3]);
    vst1q_s8(p, vmovn_high_s16(vmovn_s16(lo), hi));
}

// --- folds ---
INLAY_LANES float fold_sum(F32x16 a) {
    const float32x4_t four = vaddq_f32(vaddq_f32(a.part[0], a.part[2]), vaddq_f32(a.part[1], a.part[3]));
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
INLAY_LANES float32x4_t larger_of(float32x4_t a, float32x4_t b) {
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}
INLAY_LANES float fold_max(F32x16 a) {
    const float32x4_t four = larger_of(larger_of(a.part[0], a.part[2]), larger_of(a.part[1], a.part[3]));
    const float32x4_t two = larger_of(four, vextq_f32(four, four, 2));
    return vgetq_lane_f32(larger_of(two, vextq_f32(two, two, 1)), 0);
}
INLAY_LANES int32_t fold_sum(I32x16 a) {
    return vaddvq_s32(vaddq_s32(vaddq_s32(a.part[0], a.part[1]), vaddq_s32(a.part[2], a.part[3])));
}
INLAY_LANES int32_t fold_max(I32x16 a) {
    return vmaxvq_s32(vmaxq_s32(vmaxq_s32(a.part[0], a.part[1]), vmaxq_s32(a.part[2], a.part[3])));
}

INLAY_LANES void prefetch(const void* p) {
    __builtin_prefetch(p);
}
INLAY_LANES void prefetch_far(const void* p) {
    __builtin_prefetch(p, 0, 2);
}

}  // namespace inlay::kernels::isa_neon

#include "kernels/cpu/byte_lanes_neon.inl.h"
