// What quantised keys and values need of sixteen lanes beyond row_lanes_portable.h: lanes of two 16-bit integers, whose
// products are added up in 32 bits. This header describes it for the other instruction sets.
#pragma once

#include "kernels/cpu/row_lanes_portable.h"

namespace inlay::kernels::isa_portable {

constexpr size_t kPairTile = 4;       // accumulators of dot_pairs that leave registers for the operands
constexpr size_t kPairValueTile = 4;  // the same beside as many sums of floats

struct I16x32 {
    int16_t half[32];  // lane i: 2 i and 2 i + 1
};

// 32 bytes, widened.
INLAY_LANES I16x32 widen_bytes(const std::byte* p) {
    I16x32 r;
    for (int i = 0; i < 32; i++) r.half[i] = static_cast<int8_t>(p[i]);
    return r;
}
// 32 halves.
INLAY_LANES I16x32 load_pairs(const void* p) {
    I16x32 r;
    __builtin_memcpy(r.half, p, sizeof r.half);
    return r;
}
// Two halves in every lane.
INLAY_LANES I16x32 broadcast_pair(const int16_t* p) {
    I16x32 r;
    for (int i = 0; i < 32; i += 2) __builtin_memcpy(r.half + i, p, 2 * sizeof *p);
    return r;
}
// Wrapping.
INLAY_LANES I16x32 operator+(const I16x32& a, const I16x32& b) {
    I16x32 r;
    for (int i = 0; i < 32; i++) r.half[i] = static_cast<int16_t>(a.half[i] + b.half[i]);
    return r;
}
// Not inlined: GCC 12 for 64-bit ARM vectorises it together with `nibbles` to wrong results.
static __attribute__((noinline, unused)) I16x32 operator*(const I16x32& a, const I16x32& b) {
    I16x32 r;
    for (int i = 0; i < 32; i++) r.half[i] = static_cast<int16_t>(a.half[i] * b.half[i]);
    return r;
}
// Bits 4 n..4 n + 3 of each half.
template <unsigned n>
INLAY_LANES I16x32 nibbles(const I16x32& a) {
    I16x32 r;
    for (int i = 0; i < 32; i++) r.half[i] = static_cast<int16_t>(static_cast<uint16_t>(a.half[i]) >> (4 * n) & 15);
    return r;
}
// The elements of a table of 16 integers that those bits name. The first is -127.
struct Levels {
    int8_t level[16];
};
INLAY_LANES Levels load_levels(const int8_t* levels) {
    Levels r;
    __builtin_memcpy(r.level, levels, sizeof r.level);
    return r;
}
template <unsigned n>
INLAY_LANES I16x32 levels_of(const I16x32& a, const Levels& table) {
    I16x32 r;
    for (int i = 0; i < 32; i++) r.half[i] = table.level[static_cast<uint16_t>(a.half[i]) >> (4 * n) & 15];
    return r;
}
// sum + a * b of both halves, wrapping.
INLAY_LANES I32x16 dot_pairs(const I32x16& sum, const I16x32& a, const I16x32& b) {
    I32x16 r;
#if defined(__SSE2__)
    for (int i = 0; i < 16; i += 4) {
        const auto load_four = [](const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); };
        const __m128i products = _mm_madd_epi16(load_four(a.half + 2 * i), load_four(b.half + 2 * i));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(r.lane + i), _mm_add_epi32(load_four(sum.lane + i), products));
    }
#else
    for (int i = 0; i < 16; i++) {
        const uint32_t products = as_unsigned(a.half[2 * i] * b.half[2 * i]) +  //
                                  as_unsigned(a.half[2 * i + 1] * b.half[2 * i + 1]);
        r.lane[i] = as_signed(as_unsigned(sum.lane[i]) + products);
    }
#endif
    return r;
}

// Sixteen halves without sign, and the low halves of sixteen lanes.
INLAY_LANES I32x16 load_u16(const uint16_t* p) {
    I32x16 r;
    for (int i = 0; i < 16; i++) r.lane[i] = p[i];
    return r;
}
INLAY_LANES void store_low_halves(void* p, const I32x16& a) {
    uint16_t halves[16];
    for (int i = 0; i < 16; i++) halves[i] = static_cast<uint16_t>(as_unsigned(a.lane[i]));
    __builtin_memcpy(p, halves, sizeof halves);
}

// Lanes whose numbers differ in the bit `distance` exchanged: 1, 2, 4 or 8.
template <size_t distance>
INLAY_LANES F32x16 swap_lanes(const F32x16& a) {
    F32x16 r;
    for (size_t i = 0; i < 16; i++) r.lane[i] = a.lane[i ^ distance];
    return r;
}

}  // namespace inlay::kernels::isa_portable
