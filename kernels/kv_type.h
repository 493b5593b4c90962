// Element types of keys and values in a cache, and what a block of them takes.
//
// A block is 16 tokens of one KV head. Of the exact types (f32, f16, bf16) it is a tile: keys [dim, 16 tokens] (lanes
// are tokens), values [16 tokens, dim] (lanes are channels). Of the quantised types it is codes and, at a place of
// their own, parameters; a block is made from its f16 tile when its last token is there ("closed"):
//
//     int8 keys     codes       i8  [dim / 2][16 tokens][2 dims]
//                   parameters  f16 [groups of 64 dims][16 tokens]     scales
//     int8 values   codes       i8  [8 pairs of tokens][round16(dim)][2 tokens]
//                   parameters  f16 [16 tokens]                        scales
//     int4 keys     codes       u16 [dim / 8][16 tokens][2]      bits 4 n.. of lane (t, parity): dim 8 i + 2 n + parity
//                   parameters  f16 S, u16 r, u8 [dim] scale codes, i8 [dim] minimum codes
//     int4 values   codes       u16 [round16(dim) / 16][2 halves of the block][16 channels][2]
//                                                   bits 4 n.. of lane (c, parity): token 8 half + 2 n + parity
//                   parameters  f16 [16 tokens]                        scales
//
// A vector of 32 16-bit integers, two of one dot product in each 32-bit lane, is so one step of a product for each of:
// 32 bytes widened; a chunk of 64 bytes shifted by 0, 4, 8, 12. docs/numerics.md says what the codes mean.
#pragma once

#include <cstddef>
#include <cstdint>

namespace inlay::kernels {

inline constexpr size_t kBlockTokens = 16;  // tokens of one KV block
inline constexpr size_t kKeyGroup = 64;     // dims of a key that share one scale (int8)

enum class KvType : uint8_t { kF32, kF16, kBf16, kInt8, kInt4 };

constexpr bool is_quantized(KvType type) {
    return type == KvType::kInt8 || type == KvType::kInt4;
}

// The type that tokens of a block have until it is closed.
constexpr KvType exact_type(KvType type) {
    return is_quantized(type) ? KvType::kF16 : type;
}

// Whether keys (queries with them) and values are rotated before they are stored: `Kernels::rotate`.
constexpr bool rotates_keys(KvType type) {
    return type == KvType::kInt8;
}
constexpr bool rotates_values(KvType type) {
    return is_quantized(type);
}

// Bytes of a block of a head of `dim` channels, a multiple of 8: of the tile of an exact type, or of the codes.
// A multiple of 64, and so is where they lie.
constexpr size_t key_code_bytes(KvType type, size_t dim) {
    if (type == KvType::kInt4) return dim / 8 * 64;
    return kBlockTokens * dim * (type == KvType::kF32 ? 4 : type == KvType::kInt8 ? 1 : 2);
}
constexpr size_t value_code_bytes(KvType type, size_t dim) {
    const size_t padded = (dim + 15) / 16 * 16;
    if (is_quantized(type)) return kBlockTokens * padded / (type == KvType::kInt8 ? 1 : 2);
    return kBlockTokens * dim * (type == KvType::kF32 ? 4 : 2);
}

// Bytes of the parameters; 0 for exact types. A multiple of 4, and so is where they lie.
constexpr size_t key_parameter_bytes(KvType type, size_t dim) {
    if (type == KvType::kInt8) return (dim + kKeyGroup - 1) / kKeyGroup * kBlockTokens * 2;
    return type == KvType::kInt4 ? 4 + 2 * dim : 0;
}
constexpr size_t value_parameter_bytes(KvType type) {
    return is_quantized(type) ? kBlockTokens * 2 : 0;
}

}  // namespace inlay::kernels
