// Layouts are those of the GGUF types. A value is `scale * q`, `scale * q - minimum` or `scale * q + offset`, each
// operation rounded by itself: scale and minimum of a sub-block are products of an f16 and a small integer, rounded to
// f32 first.
#include "kernels/reference/dequantize.h"

#include <bit>
#include <cstdint>

#include "kernels/reference/half.h"

namespace inlay {
namespace {

using Bytes = const uint8_t*;

uint16_t load_u16(Bytes p) {
    return static_cast<uint16_t>(p[0] | p[1] << 8);
}

uint32_t load_u32(Bytes p) {
    return uint32_t{p[0]} | uint32_t{p[1]} << 8 | uint32_t{p[2]} << 16 | uint32_t{p[3]} << 24;
}

float load_half(Bytes p) {
    return half_to_float(load_u16(p));
}

float as_float(int q) {
    return static_cast<float>(q);
}

void f32_value(Bytes block, float* out) {
    *out = std::bit_cast<float>(load_u32(block));
}
void f16_value(Bytes block, float* out) {
    *out = load_half(block);
}
void bf16_value(Bytes block, float* out) {
    *out = bfloat16_to_float(load_u16(block));
}

// In blocks of 32, byte j of the nibbles holds value j below and value j + 16 above; bit k of the u32 `high` is the
// fifth bit of value k.
int nibble(Bytes nibbles, int k) {
    return k < 16 ? nibbles[k] & 15 : nibbles[k - 16] >> 4;
}
int fifth_bit(uint32_t high, int k) {
    return static_cast<int>(high >> k & 1) << 4;
}

void q4_0_block(Bytes block, float* out) {  // f16 d, 16 nibble bytes
    const float d = load_half(block);
    for (int k = 0; k < 32; ++k) out[k] = d * as_float(nibble(block + 2, k) - 8);
}

void q4_1_block(Bytes block, float* out) {  // f16 d, f16 m, 16 nibble bytes
    const float d = load_half(block);
    const float m = load_half(block + 2);
    for (int k = 0; k < 32; ++k) out[k] = d * as_float(nibble(block + 4, k)) + m;
}

void q5_0_block(Bytes block, float* out) {  // f16 d, u32 high bits, 16 nibble bytes
    const float d = load_half(block);
    const uint32_t high = load_u32(block + 2);
    for (int k = 0; k < 32; ++k) out[k] = d * as_float((nibble(block + 6, k) | fifth_bit(high, k)) - 16);
}

void q5_1_block(Bytes block, float* out) {  // f16 d, f16 m, u32 high bits, 16 nibble bytes
    const float d = load_half(block);
    const float m = load_half(block + 2);
    const uint32_t high = load_u32(block + 4);
    for (int k = 0; k < 32; ++k) out[k] = d * as_float(nibble(block + 8, k) | fifth_bit(high, k)) + m;
}

void q8_0_block(Bytes block, float* out) {  // f16 d, 32 int8
    const float d = load_half(block);
    for (int k = 0; k < 32; ++k) out[k] = d * as_float(static_cast<int8_t>(block[2 + k]));
}

// In Q2_K and Q3_K each half of 128 values has 32 bytes; byte l holds values l, 32 + l, 64 + l and 96 + l, two bits
// each, lowest first. A sub-block is 16 values.
int two_bits(Bytes q, int k) {
    return q[k / 128 * 32 + k % 32] >> (k % 128 / 32 * 2) & 3;
}

void q2_k_block(Bytes block,
                float* out) {  // 16 scale bytes (scale below, minimum above), 64 value bytes, f16 d, f16 dmin
    const float d = load_half(block + 80);
    const float dmin = load_half(block + 82);
    for (int sub = 0; sub < 16; ++sub) {
        const float scale = d * as_float(block[sub] & 15);
        const float minimum = dmin * as_float(block[sub] >> 4);
        for (int k = sub * 16; k < sub * 16 + 16; ++k) out[k] = scale * as_float(two_bits(block + 16, k)) - minimum;
    }
}

// The 16 six-bit scales of Q3_K: low nibbles in bytes 0 to 7 (scales 0 to 7 below, 8 to 15 above), two high bits in
// bytes 8 to 11 (byte i: scales i, 4 + i, 8 + i, 12 + i). Stored with 32 added.
int q3_k_scale(Bytes scales, int sub) {
    const int low = sub < 8 ? scales[sub] & 15 : scales[sub - 8] >> 4;
    const int high = scales[8 + sub % 4] >> (sub / 4 * 2) & 3;
    return (low | high << 4) - 32;
}

void q3_k_block(Bytes block, float* out) {  // 32 bytes of high bits, 64 value bytes, 12 scale bytes, f16 d
    const float d = load_half(block + 108);
    for (int sub = 0; sub < 16; ++sub) {
        const float scale = d * as_float(q3_k_scale(block + 96, sub));
        for (int k = sub * 16; k < sub * 16 + 16; ++k) {
            const int high = block[k % 32] >> (k / 32) & 1;  // value 32 * b + l: bit b of byte l; clear means minus 4
            out[k] = scale * as_float(two_bits(block + 32, k) + high * 4 - 4);
        }
    }
}

// Q4_K and Q5_K pack eight six-bit scales and eight six-bit minimums in 12 bytes: of the first four the low six bits of
// bytes 0 to 3 and 4 to 7; of the last four the nibbles of bytes 8 to 11, with the top bits of bytes 0 to 3 and 4 to 7.
struct ScaleAndMinimum {
    int scale, minimum;
};

ScaleAndMinimum k_scale(Bytes p, int sub) {
    if (sub < 4) return {p[sub] & 63, p[sub + 4] & 63};
    return {(p[sub + 4] & 15) | p[sub - 4] >> 6 << 4, p[sub + 4] >> 4 | p[sub] >> 6 << 4};
}

// 64 values share 32 bytes: the first 32 lie below, the others above. A sub-block is 32 values.
int k_nibble(Bytes q, int sub, int l) {
    return q[sub / 2 * 32 + l] >> (sub % 2 * 4) & 15;
}

void q4_k_block(Bytes block, float* out) {  // f16 d, f16 dmin, 12 scale bytes, 128 value bytes
    const float d = load_half(block);
    const float dmin = load_half(block + 2);
    for (int sub = 0; sub < 8; ++sub) {
        const ScaleAndMinimum packed = k_scale(block + 4, sub);
        const float scale = d * as_float(packed.scale);
        const float minimum = dmin * as_float(packed.minimum);
        for (int l = 0; l < 32; ++l) out[sub * 32 + l] = scale * as_float(k_nibble(block + 16, sub, l)) - minimum;
    }
}

void q5_k_block(Bytes block, float* out) {  // f16 d, f16 dmin, 12 scale bytes, 32 bytes of high bits, 128 value bytes
    const float d = load_half(block);
    const float dmin = load_half(block + 2);
    for (int sub = 0; sub < 8; ++sub) {
        const ScaleAndMinimum packed = k_scale(block + 4, sub);
        const float scale = d * as_float(packed.scale);
        const float minimum = dmin * as_float(packed.minimum);
        for (int l = 0; l < 32; ++l) {
            const int high = (block[16 + l] >> sub & 1) << 4;
            out[sub * 32 + l] = scale * as_float(k_nibble(block + 48, sub, l) | high) - minimum;
        }
    }
}

// Each half of 128 values: 64 bytes of low nibbles (values 0 to 63 below, 64 to 127 above) and 32 bytes of high bit
// pairs (byte l: values l, 32 + l, 64 + l, 96 + l). Stored with 32 added.
int q6_k_value(Bytes low, Bytes high, int k) {
    const int half = k / 128, i = k % 128;
    const int low_bits = low[half * 64 + i % 64] >> (i / 64 * 4) & 15;
    const int high_bits = high[half * 32 + i % 32] >> (i / 32 * 2) & 3;
    return (low_bits | high_bits << 4) - 32;
}

void q6_k_block(Bytes block, float* out) {  // 128 low bytes, 64 high bytes, 16 int8 scales, f16 d
    const float d = load_half(block + 208);
    for (int sub = 0; sub < 16; ++sub) {
        const float scale = d * as_float(static_cast<int8_t>(block[192 + sub]));
        for (int k = sub * 16; k < sub * 16 + 16; ++k) out[k] = scale * as_float(q6_k_value(block, block + 128, k));
    }
}

using DequantizeBlock = void (*)(Bytes block, float* out);

DequantizeBlock block_function(TensorType type) {
    switch (type) {
        case TensorType::kF32:
            return f32_value;
        case TensorType::kF16:
            return f16_value;
        case TensorType::kBF16:
            return bf16_value;
        case TensorType::kQ4_0:
            return q4_0_block;
        case TensorType::kQ4_1:
            return q4_1_block;
        case TensorType::kQ5_0:
            return q5_0_block;
        case TensorType::kQ5_1:
            return q5_1_block;
        case TensorType::kQ8_0:
            return q8_0_block;
        case TensorType::kQ2_K:
            return q2_k_block;
        case TensorType::kQ3_K:
            return q3_k_block;
        case TensorType::kQ4_K:
            return q4_k_block;
        case TensorType::kQ5_K:
            return q5_k_block;
        case TensorType::kQ6_K:
            return q6_k_block;
        default:
            return nullptr;
    }
}

}  // namespace

bool can_dequantize(TensorType type) {
    return block_function(type) != nullptr;
}

void dequantize(TensorType type, const void* blocks, size_t n_values, float* out) {
    const DequantizeBlock convert = block_function(type);
    if (convert == nullptr) return;
    const size_t values = block_size(type);
    const size_t bytes = type_size(type);
    Bytes block = static_cast<Bytes>(blocks);
    for (float* end = out + n_values; out < end; out += values, block += bytes) convert(block, out);
}

}  // namespace inlay
