// Packing of GGUF rows into a group; packed_layout.h draws the layouts. A row's part of a tile is read as eight words
// of four columns, whatever its type; from there on, all types are planes of bits.
#include <algorithm>
#include <cstring>

#include "kernels/packed_layout.h"
#include "kernels/packed_matrix.h"
#include "kernels/source_tile.h"

namespace inlay::kernels {
namespace {

constexpr size_t kTileWords = 8;

// One word into each stored vector of a plane: the row's place is the same in all.
template <size_t n>
void store_words(const uint32_t* words, size_t row, std::byte* plane) {
    for (size_t stored = 0; stored < n; ++stored)
        std::memcpy(plane + 4 * (stored * kGroupRows + row), words + stored, sizeof *words);
}

// `bits` bits of every byte of the row's words, from bit `from` on.
template <unsigned bits>
void pack_plane(const uint32_t* words, unsigned from, size_t row, std::byte* plane) {
    constexpr uint32_t keep = ((1u << bits) - 1u) * kEachByte;
    constexpr size_t parts = 8 / bits;           // that share a stored vector
    constexpr size_t step = bits == 4 ? 4 : 1;   // from one of them to the next
    constexpr size_t first = bits == 2 ? 4 : 1;  // from a stored vector's first to the next one's
    uint32_t packed[bits] = {};
    for (size_t part = 0; part < parts; ++part)
        for (size_t stored = 0; stored < bits; ++stored)
            packed[stored] |= (words[first * stored + step * part] >> from & keep) << (part * bits);
    store_words<bits>(packed, row, plane);
}

// Bit `bit` of each of the four bytes, side by side: the factor moves them into the topmost four without a carry.
uint32_t gather_bit(uint32_t word, unsigned bit) {
    return (word >> bit & kEachByte) * 0x10204080u >> 28;
}

template <TensorType type>
void pack_scales(const SourceScales& s, size_t row, size_t tile, std::byte* scales) {
    constexpr PackedFormat format = packed_format(type);
    const size_t half = format.scales == ScaleLayout::kScale ? tile * 32 : 0;
    std::memcpy(scales + half + 2 * row, &s.d, 2);
    if (format.has_offset) std::memcpy(scales + 32 + 2 * row, &s.m, 2);
    if (format.tiles_per_strip != 8) return;
    std::byte* own = scales + 64 + 32 * tile;
    own[row] = static_cast<std::byte>(s.small[0]);
    own[kGroupRows + row] = static_cast<std::byte>(s.small[1]);
}

template <TensorType type>
void pack_quantized(const std::byte* rows, size_t n_rows, size_t n_cols, std::byte* group) {
    constexpr PackedFormat format = packed_format(type);
    constexpr unsigned bits = format.plane_bits;
    const size_t source_row_bytes = row_size(type, n_cols);
    for (size_t tile = 0; tile < n_cols / kTileCols; ++tile) {
        std::byte* strip = group + tile / format.tiles_per_strip * format.strip_bytes;
        const size_t in_strip = tile % format.tiles_per_strip;
        std::byte* planes = strip + format.scale_bytes + in_strip * format.tile_bytes;
        std::byte* high = planes + size_t{64} * bits;
        uint64_t masks[kTileWords] = {};
        for (size_t row = 0; row < n_rows; ++row) {
            const auto* source = reinterpret_cast<SourceBytes>(rows + row * source_row_bytes);
            const SourceTile t = source_tile<type>(source, tile);
            pack_scales<type>(t.scales, row, in_strip, strip);
            pack_plane<bits>(t.words, 0, row, planes);
            if constexpr (format.high_bits == 2) pack_plane<2>(t.words, bits, row, high);
            if constexpr (format.high_bits == 1)
                for (size_t i = 0; i < kTileWords; ++i) masks[i] |= uint64_t{gather_bit(t.words[i], bits)} << (4 * row);
        }
        if constexpr (format.high_bits == 1) std::memcpy(high, masks, sizeof masks);
    }
}

// A few columns at a time, so that their lines stay near.
template <typename Element>
void transpose_rows(const std::byte* rows, size_t n_rows, size_t n_cols, std::byte* group) {
    constexpr size_t kColumns = 64;
    for (size_t first = 0; first < n_cols; first += kColumns) {
        const size_t end = first + kColumns < n_cols ? first + kColumns : n_cols;
        for (size_t row = 0; row < n_rows; ++row)
            for (size_t column = first; column < end; ++column)
                std::memcpy(group + (column * kGroupRows + row) * sizeof(Element),
                            rows + (row * n_cols + column) * sizeof(Element), sizeof(Element));
    }
}

using PackRows = void (*)(const std::byte* rows, size_t n_rows, size_t n_cols, std::byte* group);

PackRows pack_rows_of(TensorType type) {
    switch (type) {
        case TensorType::kF32:
            return transpose_rows<uint32_t>;
        case TensorType::kF16:
        case TensorType::kBF16:
            return transpose_rows<uint16_t>;
        case TensorType::kQ4_0:
            return pack_quantized<TensorType::kQ4_0>;
        case TensorType::kQ4_1:
            return pack_quantized<TensorType::kQ4_1>;
        case TensorType::kQ5_0:
            return pack_quantized<TensorType::kQ5_0>;
        case TensorType::kQ5_1:
            return pack_quantized<TensorType::kQ5_1>;
        case TensorType::kQ8_0:
            return pack_quantized<TensorType::kQ8_0>;
        case TensorType::kQ2_K:
            return pack_quantized<TensorType::kQ2_K>;
        case TensorType::kQ3_K:
            return pack_quantized<TensorType::kQ3_K>;
        case TensorType::kQ4_K:
            return pack_quantized<TensorType::kQ4_K>;
        case TensorType::kQ5_K:
            return pack_quantized<TensorType::kQ5_K>;
        case TensorType::kQ6_K:
            return pack_quantized<TensorType::kQ6_K>;
        default:
            return nullptr;
    }
}

}  // namespace

void pack_group(TensorType type, const std::byte* rows, size_t n_rows, size_t n_cols, std::byte* group) {
    std::memset(group, 0, packed_group_bytes(type, n_cols));
    if (const PackRows pack_rows = pack_rows_of(type)) pack_rows(rows, n_rows, n_cols, group);
}

void pack_groups(TensorType type, const std::byte* rows, size_t n_rows, size_t n_cols, std::byte* groups) {
    const size_t group_bytes = packed_group_bytes(type, n_cols);
    const size_t row_bytes = row_size(type, n_cols);
    for (size_t first = 0; first < n_rows; first += kGroupRows, groups += group_bytes)
        pack_group(type, rows + first * row_bytes, std::min(kGroupRows, n_rows - first), n_cols, groups);
}

}  // namespace inlay::kernels
