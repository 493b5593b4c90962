// How the weights of 16 rows lie in a packed group.
//
// Unquantised types: column after column, the 16 rows' values side by side: [n_cols, 16].
//
// Quantised types: the columns are cut into tiles of 32, tiles are gathered into strips, and a strip is read from front
// to back:
//
//     group:  | strip 0 | strip 1 | ...                        the last one may hold fewer tiles
//     strip:  | scales of all tiles | tile 0 | tile 1 | ...    both parts multiples of 64 bytes
//     tile:   | plane | high bits |                            64 bytes per bit of a weight
//
// Weights are kept unsigned; what a weight is worth is scale * (q - zero), or scale * q + offset. Byte 4 * r + c of a
// vector of 64 bytes belongs to row r; vector j (0..7) of a tile holds columns 4 * j + c of it. Dot product
// instructions take four columns of a row at a time, so that 16 outputs come out as 16 lanes.
//
//     plane of 8 bits:  8 x 64 bytes, vectors 0..7
//     plane of 4 bits:  4 x 64 bytes, the j-th with vector j below and vector 4 + j above
//     plane of 2 bits:  2 x 64 bytes, the i-th with vectors 4 * i + k at bits 2 * k
//     1 high bit:       8 masks of 64 bits, one for each vector
//     2 high bits:      as a plane of 2 bits
//
//     scales  kScale        2 tiles: f16 scale[2 tiles, 16 rows]
//             kScaleOffset  1 tile:  f16 scale[16], f16 offset[16]
//             kSuper...     8 tiles: f16 d[16], f16 dmin[16] (unused without an offset), then for each tile 32 bytes:
//               kSuperBlocks      u8 scale[16], u8 minimum[16], for 32 columns
//               kSuperHalves      s8 scale[2 halves, 16], each for 16 columns
//               kSuperHalfNibbles u8 [2 halves, 16], scale below and minimum above
//                           scale = d * scale, offset = -(dmin * minimum), rounded to f32
//
// Bits per weight, padding included, beside those in a GGUF file: Q2_K 2.63 (2.63), Q3_K 3.63 (3.44), Q4_0 4.5 (4.5),
// Q4_1 5 (5), Q4_K 4.63 (4.5), Q5_0 5.5 (5.5), Q5_1 6 (6), Q5_K 5.63 (5.5), Q6_K 6.63 (6.56), Q8_0 8.5 (8.5).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/tensor_type.h"

namespace inlay::kernels {

enum class ScaleLayout : uint8_t { kNone, kScale, kScaleOffset, kSuperBlocks, kSuperHalves, kSuperHalfNibbles };

// Fields only: code that is compiled for an instruction set reads them from a constant.
struct PackedFormat {
    ScaleLayout scales = ScaleLayout::kNone;  // kNone: not a quantised type that can be packed
    uint8_t plane_bits = 0;
    uint8_t high_bits = 0;
    uint8_t zero = 0;
    // What follows from these:
    bool has_offset = false;
    uint8_t sub_blocks = 0;  // of a tile
    uint8_t tiles_per_strip = 1;
    uint16_t scale_bytes = 0;
    uint16_t tile_bytes = 0;
    uint16_t strip_bytes = 0;
};

constexpr PackedFormat make_packed_format(ScaleLayout scales, int plane_bits, int high_bits, int zero) {
    const bool is_super = scales != ScaleLayout::kScale && scales != ScaleLayout::kScaleOffset;
    PackedFormat f;
    f.scales = scales;
    f.plane_bits = static_cast<uint8_t>(plane_bits);
    f.high_bits = static_cast<uint8_t>(high_bits);
    f.zero = static_cast<uint8_t>(zero);
    f.has_offset = scales != ScaleLayout::kScale && scales != ScaleLayout::kSuperHalves;
    f.sub_blocks = scales == ScaleLayout::kSuperHalves || scales == ScaleLayout::kSuperHalfNibbles ? 2 : 1;
    f.tiles_per_strip = is_super ? 8 : scales == ScaleLayout::kScale ? 2 : 1;
    f.scale_bytes = is_super ? 64 + 8 * 32 : 64;
    f.tile_bytes = static_cast<uint16_t>(64 * (plane_bits + high_bits));
    f.strip_bytes = static_cast<uint16_t>(f.scale_bytes + f.tiles_per_strip * f.tile_bytes);
    return f;
}

constexpr PackedFormat packed_format(TensorType type) {
    switch (type) {
        case TensorType::kQ4_0:
            return make_packed_format(ScaleLayout::kScale, 4, 0, 8);
        case TensorType::kQ4_1:
            return make_packed_format(ScaleLayout::kScaleOffset, 4, 0, 0);
        case TensorType::kQ5_0:
            return make_packed_format(ScaleLayout::kScale, 4, 1, 16);
        case TensorType::kQ5_1:
            return make_packed_format(ScaleLayout::kScaleOffset, 4, 1, 0);
        case TensorType::kQ8_0:
            return make_packed_format(ScaleLayout::kScale, 8, 0, 128);
        case TensorType::kQ2_K:
            return make_packed_format(ScaleLayout::kSuperHalfNibbles, 2, 0, 0);
        case TensorType::kQ3_K:
            return make_packed_format(ScaleLayout::kSuperHalves, 2, 1, 4);
        case TensorType::kQ4_K:
            return make_packed_format(ScaleLayout::kSuperBlocks, 4, 0, 0);
        case TensorType::kQ5_K:
            return make_packed_format(ScaleLayout::kSuperBlocks, 4, 1, 0);
        case TensorType::kQ6_K:
            return make_packed_format(ScaleLayout::kSuperHalves, 4, 2, 32);
        default:
            return {};
    }
}

}  // namespace inlay::kernels
