// Packing of GGUF rows into groups and back; packed_layout.h draws the layouts. A row's quants are first read as 32
// unsigned bytes a tile, whatever their type; from there on, all types are planes of bits.
#include "kernels/packed_matrix.h"

#include <cstring>

#include "kernels/packed_layout.h"
#include "kernels/packed_tile_row.h"
#include "kernels/reference/half.h"
#include "kernels/source_rows.h"

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

// Bit `bit` of each of the four bytes, side by side.
uint32_t gather_bit(uint32_t word, unsigned bit) {
    const uint32_t x = word >> bit & 0x01010101u;
    return (x | x >> 7 | x >> 14 | x >> 21) & 15u;
}
uint32_t scatter_bit(uint32_t four) {
    return (four | four << 7 | four << 14 | four << 21) & 0x01010101u;
}

void store_word(std::byte* p, size_t index, uint32_t word) {
    std::memcpy(p + 4 * index, &word, 4);
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

// words: [8, 16]; takes `bits` bits of every byte from bit `from` on.
void pack_plane(const uint32_t* words, unsigned bits, unsigned from, std::byte* out) {
    const uint32_t keep = ((1u << bits) - 1u) * 0x01010101u;
    for (size_t stored = 0; stored < bits; ++stored) {
        for (size_t row = 0; row < kGroupRows; ++row) {
            uint32_t word = 0;
            for (unsigned part = 0; part < 8 / bits; ++part) {
                const size_t vector = first_vector(bits, stored) + part * plane_step(bits);
                word |= (words[vector * kGroupRows + row] >> from & keep) << (part * bits);
            }
            store_word(out, stored * kGroupRows + row, word);
        }
    }
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

void pack_masks(const uint32_t* words, unsigned from, std::byte* out) {
    for (size_t vector = 0; vector < kTileWords; ++vector) {
        uint64_t mask = 0;
        for (size_t row = 0; row < kGroupRows; ++row)
            mask |= uint64_t{gather_bit(words[vector * kGroupRows + row], from)} << (4 * row);
        std::memcpy(out + 8 * vector, &mask, 8);
    }
}
void unpack_masks(const std::byte* masks, unsigned to, size_t row, uint32_t* words) {
    for (size_t vector = 0; vector < kTileWords; ++vector) {
        uint64_t mask;
        std::memcpy(&mask, masks + 8 * vector, 8);
        words[vector] |= scatter_bit(static_cast<uint32_t>(mask >> (4 * row) & 15)) << to;
    }
}

void pack_tile(const PackedFormat& format, const uint32_t* words, std::byte* tile) {
    pack_plane(words, format.plane_bits, 0, tile);
    std::byte* high = tile + size_t{64} * format.plane_bits;
    if (format.high_bits == 1) pack_masks(words, format.plane_bits, high);
    if (format.high_bits == 2) pack_plane(words, 2, format.plane_bits, high);
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

void pack_scales(const PackedFormat& format, const SourceScales& s, size_t row, size_t tile, std::byte* scales) {
    const size_t half = format.scales == ScaleLayout::kScale ? tile * 32 : 0;
    std::memcpy(scales + half + 2 * row, &s.d, 2);
    if (format.has_offset) std::memcpy(scales + 32 + 2 * row, &s.m, 2);
    if (format.tiles_per_strip != 8) return;
    std::byte* own = scales + 64 + 32 * tile;
    own[row] = static_cast<std::byte>(s.small[0]);
    own[kGroupRows + row] = static_cast<std::byte>(s.small[1]);
}

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

// --- groups ----------------------------------------------------------------------------------------------------------

void pack_quantized(TensorType type, const std::byte* rows, size_t n_rows, size_t n_cols, std::byte* group) {
    const PackedFormat format = packed_format(type);
    const size_t source_row_bytes = row_size(type, n_cols);
    for (size_t tile = 0; tile < n_cols / kTileCols; ++tile) {
        std::byte* strip = group + tile / format.tiles_per_strip * format.strip_bytes;
        const size_t in_strip = tile % format.tiles_per_strip;
        uint32_t words[kTileWords * kGroupRows] = {};
        for (size_t row = 0; row < n_rows; ++row) {
            const SourceTile source = read_source_tile(type, rows + row * source_row_bytes, tile);
            for (size_t vector = 0; vector < kTileWords; ++vector)
                std::memcpy(&words[vector * kGroupRows + row], source.q + 4 * vector, 4);
            pack_scales(format, source.scales, row, in_strip, strip);
        }
        pack_tile(format, words, strip + format.scale_bytes + in_strip * format.tile_bytes);
    }
}

template <typename Element>
void transpose_rows(const std::byte* rows, size_t n_rows, size_t n_cols, std::byte* group) {
    for (size_t row = 0; row < n_rows; ++row) {
        for (size_t column = 0; column < n_cols; ++column) {
            std::memcpy(group + (column * kGroupRows + row) * sizeof(Element),
                        rows + (row * n_cols + column) * sizeof(Element), sizeof(Element));
        }
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

void pack_group(TensorType type, const std::byte* rows, size_t n_rows, size_t n_cols, std::byte* group) {
    std::memset(group, 0, packed_group_bytes(type, n_cols));
    if (type == TensorType::kF32) {
        transpose_rows<uint32_t>(rows, n_rows, n_cols, group);
    } else if (is_float(type)) {
        transpose_rows<uint16_t>(rows, n_rows, n_cols, group);
    } else {
        pack_quantized(type, rows, n_rows, n_cols, group);
    }
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
