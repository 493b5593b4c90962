// Sixteen lanes in plain C++, for any 64-bit processor; also the description of the operations that lanes_avx2.h and
// lanes_avx512.h provide with the same names and the same bits. `F32x16` and `I32x16` are sixteen floats and integers,
// `Mask16` a choice of lanes. Bytes of sixteen rows and four columns, `U8x64`, are described in byte_lanes_plain.inl.h.
#pragma once

#include <cstddef>
#include <cstdint>

// The namespace of everything that is compiled for this instruction set. Objects built with these flags define symbols
// of this namespace only: an inline function of another would reach processors that cannot run it.
#define INLAY_ISA isa_portable
#define INLAY_ISA_NAME "portable"
#define INLAY_LANES static inline  // not forced: software fma inlined everywhere would make objects of megabytes
#define INLAY_REGISTERS 4          // vector registers that the compiler can keep lanes in, as sixteen-lane units

#include "kernels/cpu/exact_scalar.inl.h"

namespace inlay::kernels::isa_portable {

struct alignas(16) F32x16 {
    float lane[16];
};
struct alignas(16) I32x16 {
    int32_t lane[16];
};
struct alignas(16) Mask16 {
    int32_t lane[16];  // -1 or 0
};

#define INLAY_EACH_LANE(Result, expression) \
    do {                                    \
        Result r;                           \
        for (int i = 0; i < 16; i++) {      \
            r.lane[i] = expression;         \
        }                                   \
        return r;                           \
    } while (false)

// --- masks ---
// The lanes 0..n-1.
INLAY_LANES Mask16 first_lanes(size_t n) {
    INLAY_EACH_LANE(Mask16, static_cast<size_t>(i) < n ? -1 : 0);
}
INLAY_LANES Mask16 operator&(Mask16 a, Mask16 b) {
    INLAY_EACH_LANE(Mask16, a.lane[i] & b.lane[i]);
}
INLAY_LANES Mask16 operator|(Mask16 a, Mask16 b) {
    INLAY_EACH_LANE(Mask16, a.lane[i] | b.lane[i]);
}

// --- float: memory. Addresses need no alignment; partial loads give 0 in the lanes from n on and touch only n
// elements.
INLAY_LANES F32x16 broadcast(float x) {
    INLAY_EACH_LANE(F32x16, x);
}
INLAY_LANES F32x16 zero() {
    return broadcast(0.0f);
}
INLAY_LANES F32x16 load(const float* p) {
    F32x16 r;
    __builtin_memcpy(r.lane, p, sizeof r.lane);
    return r;
}
INLAY_LANES F32x16 load_partial(const float* p, size_t n) {
    F32x16 r = {};
    __builtin_memcpy(r.lane, p, (n < 16 ? n : 16) * sizeof(float));
    return r;
}
INLAY_LANES void store(float* p, F32x16 a) {
    __builtin_memcpy(p, a.lane, sizeof a.lane);
}
INLAY_LANES void store_partial(float* p, F32x16 a, size_t n) {
    __builtin_memcpy(p, a.lane, (n < 16 ? n : 16) * sizeof(float));
}

// --- float: arithmetic, each rounded once to nearest even ---
INLAY_LANES F32x16 operator+(F32x16 a, F32x16 b) {
    INLAY_EACH_LANE(F32x16, a.lane[i] + b.lane[i]);
}
INLAY_LANES F32x16 operator-(F32x16 a, F32x16 b) {
    INLAY_EACH_LANE(F32x16, a.lane[i] - b.lane[i]);
}
INLAY_LANES F32x16 operator*(F32x16 a, F32x16 b) {
    INLAY_EACH_LANE(F32x16, a.lane[i] * b.lane[i]);
}
INLAY_LANES F32x16 operator/(F32x16 a, F32x16 b) {
    INLAY_EACH_LANE(F32x16, a.lane[i] / b.lane[i]);
}
// a * b + c
static __attribute__((noinline, unused)) F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
    INLAY_EACH_LANE(F32x16, exact_fma(a.lane[i], b.lane[i], c.lane[i]));
}
INLAY_LANES F32x16 sqrt(F32x16 a) {
    INLAY_EACH_LANE(F32x16, __builtin_sqrtf(a.lane[i]));
}
// The second where either is NaN or both are zero, as the SSE instructions do.
INLAY_LANES F32x16 min(F32x16 a, F32x16 b) {
    INLAY_EACH_LANE(F32x16, a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]);
}
INLAY_LANES F32x16 max(F32x16 a, F32x16 b) {
    INLAY_EACH_LANE(F32x16, a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]);
}
INLAY_LANES F32x16 negate(F32x16 a) {
    INLAY_EACH_LANE(F32x16, -a.lane[i]);
}
INLAY_LANES F32x16 abs(F32x16 a) {
    INLAY_EACH_LANE(F32x16, __builtin_fabsf(a.lane[i]));
}

INLAY_LANES Mask16 operator<(F32x16 a, F32x16 b) {
    INLAY_EACH_LANE(Mask16, a.lane[i] < b.lane[i] ? -1 : 0);
}
INLAY_LANES Mask16 operator<=(F32x16 a, F32x16 b) {
    INLAY_EACH_LANE(Mask16, a.lane[i] <= b.lane[i] ? -1 : 0);
}
INLAY_LANES Mask16 operator>(F32x16 a, F32x16 b) {
    INLAY_EACH_LANE(Mask16, a.lane[i] > b.lane[i] ? -1 : 0);
}
INLAY_LANES Mask16 operator==(F32x16 a, F32x16 b) {
    INLAY_EACH_LANE(Mask16, a.lane[i] == b.lane[i] ? -1 : 0);
}
// a in the mask's lanes, b in the others.
INLAY_LANES F32x16 select(Mask16 m, F32x16 a, F32x16 b) {
    INLAY_EACH_LANE(F32x16, m.lane[i] ? a.lane[i] : b.lane[i]);
}

// --- integers, wrapping ---
INLAY_LANES int32_t as_signed(uint32_t x) {
    return static_cast<int32_t>(x);
}
INLAY_LANES uint32_t as_unsigned(int32_t x) {
    return static_cast<uint32_t>(x);
}
INLAY_LANES I32x16 broadcast(int32_t x) {
    INLAY_EACH_LANE(I32x16, x);
}
INLAY_LANES I32x16 load(const int32_t* p) {
    I32x16 r;
    __builtin_memcpy(r.lane, p, sizeof r.lane);
    return r;
}
INLAY_LANES void store(int32_t* p, I32x16 a) {
    __builtin_memcpy(p, a.lane, sizeof a.lane);
}
INLAY_LANES I32x16 operator+(I32x16 a, I32x16 b) {
    INLAY_EACH_LANE(I32x16, as_signed(as_unsigned(a.lane[i]) + as_unsigned(b.lane[i])));
}
INLAY_LANES I32x16 operator-(I32x16 a, I32x16 b) {
    INLAY_EACH_LANE(I32x16, as_signed(as_unsigned(a.lane[i]) - as_unsigned(b.lane[i])));
}
INLAY_LANES I32x16 operator&(I32x16 a, I32x16 b) {
    INLAY_EACH_LANE(I32x16, a.lane[i] & b.lane[i]);
}
INLAY_LANES I32x16 operator|(I32x16 a, I32x16 b) {
    INLAY_EACH_LANE(I32x16, a.lane[i] | b.lane[i]);
}
INLAY_LANES I32x16 operator^(I32x16 a, I32x16 b) {
    INLAY_EACH_LANE(I32x16, a.lane[i] ^ b.lane[i]);
}
INLAY_LANES I32x16 max(I32x16 a, I32x16 b) {
    INLAY_EACH_LANE(I32x16, a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]);
}
template <unsigned n>
INLAY_LANES I32x16 shift_left(I32x16 a) {
    INLAY_EACH_LANE(I32x16, as_signed(as_unsigned(a.lane[i]) << n));
}
template <unsigned n>
INLAY_LANES I32x16 shift_right(I32x16 a) {
    INLAY_EACH_LANE(I32x16, a.lane[i] >> n);
}
template <unsigned n>
INLAY_LANES I32x16 shift_right_unsigned(I32x16 a) {
    INLAY_EACH_LANE(I32x16, as_signed(as_unsigned(a.lane[i]) >> n));
}
INLAY_LANES Mask16 operator==(I32x16 a, I32x16 b) {
    INLAY_EACH_LANE(Mask16, a.lane[i] == b.lane[i] ? -1 : 0);
}
INLAY_LANES Mask16 operator>(I32x16 a, I32x16 b) {
    INLAY_EACH_LANE(Mask16, a.lane[i] > b.lane[i] ? -1 : 0);
}
INLAY_LANES I32x16 select(Mask16 m, I32x16 a, I32x16 b) {
    INLAY_EACH_LANE(I32x16, (a.lane[i] & m.lane[i]) | (b.lane[i] & ~m.lane[i]));
}

// --- conversions ---
// Round to nearest even; INT32_MIN for NaN and what does not fit.
INLAY_LANES I32x16 round_to_int(F32x16 a) {
    INLAY_EACH_LANE(I32x16, round_to_int(a.lane[i]));
}
INLAY_LANES F32x16 to_float(I32x16 a) {
    INLAY_EACH_LANE(F32x16, static_cast<float>(a.lane[i]));
}
INLAY_LANES I32x16 bits_of(F32x16 a) {
    I32x16 r;
    __builtin_memcpy(&r, &a, sizeof r);
    return r;
}
INLAY_LANES F32x16 float_of(I32x16 a) {
    F32x16 r;
    __builtin_memcpy(&r, &a, sizeof r);
    return r;
}
INLAY_LANES F32x16 load_f16(const uint16_t* p) {
    INLAY_EACH_LANE(F32x16, f16_to_f32(p[i]));
}
INLAY_LANES F32x16 load_f16_partial(const uint16_t* p, size_t n) {
    uint16_t all[16] = {};
    __builtin_memcpy(all, p, (n < 16 ? n : 16) * sizeof(uint16_t));
    return load_f16(all);
}
// Rounded to nearest even.
INLAY_LANES void store_f16(uint16_t* p, F32x16 a) {
    for (int i = 0; i < 16; i++) p[i] = f32_to_f16(a.lane[i]);
}
INLAY_LANES void store_f16_partial(uint16_t* p, F32x16 a, size_t n) {
    for (size_t i = 0; i < (n < 16 ? n : 16); i++) p[i] = f32_to_f16(a.lane[i]);
}
INLAY_LANES F32x16 load_bf16(const uint16_t* p) {
    I32x16 bits;
    for (int i = 0; i < 16; i++) bits.lane[i] = as_signed(static_cast<uint32_t>(p[i]) << 16);
    return float_of(bits);
}
INLAY_LANES I32x16 load_u8(const uint8_t* p) {
    INLAY_EACH_LANE(I32x16, p[i]);
}
INLAY_LANES I32x16 load_s8(const int8_t* p) {
    INLAY_EACH_LANE(I32x16, p[i]);
}
// The low byte of each lane.
INLAY_LANES void store_s8(int8_t* p, I32x16 a) {
    for (int i = 0; i < 16; i++) p[i] = static_cast<int8_t>(a.lane[i]);
}

// --- folds in halves: lane i with lane i + 8, then 4, 2, 1 ---
INLAY_LANES float fold_sum(F32x16 a) {
    for (int half = 8; half > 0; half /= 2)
        for (int i = 0; i < half; i++) a.lane[i] = a.lane[i] + a.lane[i + half];
    return a.lane[0];
}
INLAY_LANES float fold_max(F32x16 a) {
    for (int half = 8; half > 0; half /= 2)
        for (int i = 0; i < half; i++) a.lane[i] = a.lane[i] > a.lane[i + half] ? a.lane[i] : a.lane[i + half];
    return a.lane[0];
}
INLAY_LANES int32_t fold_sum(I32x16 a) {
    uint32_t sum = 0;
    for (int i = 0; i < 16; i++) sum += as_unsigned(a.lane[i]);
    return as_signed(sum);
}
INLAY_LANES int32_t fold_max(I32x16 a) {
    int32_t most = a.lane[0];
    for (int i = 1; i < 16; i++) most = a.lane[i] > most ? a.lane[i] : most;
    return most;
}

// Asks for a cache line that will be read soon; any address is allowed.
INLAY_LANES void prefetch(const void* p) {
    __builtin_prefetch(p);
}
// The same, but only into the second level of caches.
INLAY_LANES void prefetch_far(const void* p) {
    __builtin_prefetch(p, 0, 2);
}

#undef INLAY_EACH_LANE

}  // namespace inlay::kernels::isa_portable

#if defined(__SSSE3__)
#include "kernels/cpu/byte_lanes_sse.inl.h"
#else
#include "kernels/cpu/byte_lanes_plain.inl.h"
#endif
