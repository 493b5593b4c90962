// Packed groups, their sizes and what their rows are worth; packed_layout.h draws the layouts, pack_group.cpp makes
// them.
#include "kernels/packed_matrix.h"

#include <cstring>

#include "kernels/packed_layout.h"
#include "kernels/packed_tile_row.h"
#include "kernels/reference/half.h"

namespace inlay::kernels {
namespace {

constexpr size_t kTileWords = 8;  // of four columns, in each row
constexpr size_t kSuperColumns = 256;

size_t round_up_64(size_t n) {
    return (n + 63) / 64 * 64;
}

size_t element_bytes(TensorType type) {
    return type == TensorType::kF32 ? 4 : 2;
}

bool is_float(TensorType type) {
    return type == TensorType::kF32 || type == TensorType::kF16 || type == TensorType::kBF16;
}

size_t columns_multiple(TensorType type) {
    if (is_float(type)) return 1;
    const PackedFormat format = packed_format(type);
    if (format.scales == ScaleLayout::kNone) return 0;
    return format.tiles_per_strip == 8 ? kSuperColumns : kTileCols;
}

// --- planes: words of four columns, [16 rows] of each of the eight vectors -------------------------------------------

// Four bits side by side, one to each byte.
uint32_t scatter_bit(uint32_t four) {
    return (four | four << 7 | four << 14 | four << 21) & 0x01010101u;
}

uint32_t load_word(const std::byte* p, size_t index) {
    uint32_t word;
    std::memcpy(&word, p + 4 * index, 4);
    return word;
}

// The vectors that share one stored vector in a plane are `step` apart.
constexpr size_t plane_step(unsigned bits) {
    return bits == 4 ? 4 : 1;
}
constexpr size_t first_vector(unsigned bits, size_t stored) {
    return bits == 2 ? 4 * stored : stored;
}

// Adds the bits to the eight words of one row.
void unpack_plane(const std::byte* plane, unsigned bits, unsigned to, size_t row, uint32_t* words) {
    const uint32_t keep = ((1u << bits) - 1u) * 0x01010101u;
    for (size_t stored = 0; stored < bits; ++stored) {
        const uint32_t word = load_word(plane, stored * kGroupRows + row);
        for (unsigned part = 0; part < 8 / bits; ++part) {
            words[first_vector(bits, stored) + part * plane_step(bits)] |= (word >> (part * bits) & keep) << to;
        }
    }
}

void unpack_masks(const std::byte* masks, unsigned to, size_t row, uint32_t* words) {
    for (size_t vector = 0; vector < kTileWords; ++vector) {
        uint64_t mask;
        std::memcpy(&mask, masks + 8 * vector, 8);
        words[vector] |= scatter_bit(static_cast<uint32_t>(mask >> (4 * row) & 15)) << to;
    }
}

void unpack_tile(const PackedFormat& format, const std::byte* tile, size_t row, uint8_t* q) {
    uint32_t words[kTileWords] = {};
    unpack_plane(tile, format.plane_bits, 0, row, words);
    const std::byte* high = tile + size_t{64} * format.plane_bits;
    if (format.high_bits == 1) unpack_masks(high, format.plane_bits, row, words);
    if (format.high_bits == 2) unpack_plane(high, 2, format.plane_bits, row, words);
    std::memcpy(q, words, sizeof words);
}

// --- scales ----------------------------------------------------------------------------------------------------------

void unpack_scales(const PackedFormat& format, const std::byte* scales, size_t row, size_t tile, TileRow& out) {
    const auto half_at = [&](size_t offset) {
        uint16_t bits;
        std::memcpy(&bits, scales + offset + 2 * row, 2);
        return half_to_float(bits);
    };
    const auto small = [&](size_t i) { return static_cast<uint8_t>(scales[64 + 32 * tile + kGroupRows * i + row]); };
    switch (format.scales) {
        case ScaleLayout::kScale:
            out.scale[0] = half_at(32 * tile);
            break;
        case ScaleLayout::kScaleOffset:
            out.scale[0] = half_at(0);
            out.offset[0] = half_at(32);
            break;
        case ScaleLayout::kSuperBlocks:
            out.scale[0] = half_at(0) * static_cast<float>(small(0));
            out.offset[0] = -(half_at(32) * static_cast<float>(small(1)));
            break;
        case ScaleLayout::kSuperHalves:
            for (size_t i = 0; i < 2; ++i)
                out.scale[i] = half_at(0) * static_cast<float>(static_cast<int8_t>(small(i)));
            break;
        case ScaleLayout::kSuperHalfNibbles:
            for (size_t i = 0; i < 2; ++i) {
                out.scale[i] = half_at(0) * static_cast<float>(small(i) & 15);
                out.offset[i] = -(half_at(32) * static_cast<float>(small(i) >> 4));
            }
            break;
        case ScaleLayout::kNone:
            break;
    }
}

void unpack_quantized_row(const PackedMatrix& matrix, size_t row, float* out) {
    for (size_t tile = 0; tile < matrix.n_cols / kTileCols; ++tile) {
        const TileRow t = unpack_tile_row(matrix, row, tile);
        for (size_t k = 0; k < kTileCols; ++k) {
            const size_t sub = k * t.sub_blocks / kTileCols;
            const float value = t.scale[sub] * static_cast<float>(t.q[k] - t.zero);
            out[tile * kTileCols + k] = t.has_offset ? value + t.offset[sub] : value;
        }
    }
}

}  // namespace

bool can_pack(TensorType type, size_t n_cols) {
    const size_t multiple = columns_multiple(type);
    return multiple != 0 && n_cols != 0 && n_cols % multiple == 0;
}

size_t packed_group_bytes(TensorType type, size_t n_cols) {
    if (is_float(type)) return round_up_64(n_cols * kGroupRows * element_bytes(type));
    const PackedFormat format = packed_format(type);
    const size_t tiles = n_cols / kTileCols;
    const size_t rest = tiles % format.tiles_per_strip;
    const size_t last = rest == 0 ? 0 : format.scale_bytes + rest * format.tile_bytes;
    return tiles / format.tiles_per_strip * format.strip_bytes + last;
}

TileRow unpack_tile_row(const PackedMatrix& matrix, size_t row, size_t tile) {
    const PackedFormat format = packed_format(matrix.type);
    const std::byte* group = matrix.data + row / kGroupRows * packed_group_bytes(matrix.type, matrix.n_cols);
    const std::byte* strip = group + tile / format.tiles_per_strip * format.strip_bytes;
    const size_t in_strip = tile % format.tiles_per_strip;
    TileRow t = {{}, format.zero, format.sub_blocks, format.has_offset, {}, {}};
    unpack_tile(format, strip + format.scale_bytes + in_strip * format.tile_bytes, row % kGroupRows, t.q);
    unpack_scales(format, strip, row % kGroupRows, in_strip, t);
    return t;
}

void unpack_row(const PackedMatrix& matrix, size_t row, float* out) {
    if (!is_float(matrix.type)) {
        unpack_quantized_row(matrix, row, out);
        return;
    }
    const size_t bytes = element_bytes(matrix.type);
    const std::byte* group = matrix.data + row / kGroupRows * packed_group_bytes(matrix.type, matrix.n_cols);
    for (size_t column = 0; column < matrix.n_cols; ++column) {
        const std::byte* element = group + (column * kGroupRows + row % kGroupRows) * bytes;
        if (matrix.type == TensorType::kF32) {
            std::memcpy(out + column, element, 4);
            continue;
        }
        uint16_t half;
        std::memcpy(&half, element, 2);
        out[column] = matrix.type == TensorType::kF16 ? half_to_float(half) : bfloat16_to_float(half);
    }
}

}  // namespace inlay::kernels
