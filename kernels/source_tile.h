// Reads the quants of a GGUF row in one common form, tile by tile, for packing. The block layouts here are those of
// kernels/reference/dequantize.cpp, which explains them; this reads the integers that it multiplies. Four columns are
// one word, and loops over words have constant bounds: compilers make vectors of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/tensor_type.h"

namespace inlay::kernels {

struct SourceScales {
    uint16_t d = 0;         // f16, of the block or super-block
    uint16_t m = 0;         // f16: m of Q4_1 and Q5_1, dmin of K-quants
    uint8_t small[2] = {};  // super-blocks: the two bytes of packed_layout.h for this tile
};

struct SourceTile {
    uint32_t words[8];  // of four columns, a byte each, unsigned: the zero point included
    SourceScales scales;
};

using SourceBytes = const uint8_t*;

inline constexpr size_t kTilesInSuper = 8;
inline constexpr uint32_t kEachByte = 0x01010101;

inline uint16_t read_u16(SourceBytes p) {
    return static_cast<uint16_t>(p[0] | p[1] << 8);
}

// words[i] = the bits `keep` of each byte from bit `from` on; `n` words.
template <size_t n>
inline void read_bits(SourceBytes bytes, unsigned from, uint32_t keep, uint32_t* words) {
    uint32_t stored[n];
    std::memcpy(stored, bytes, sizeof stored);
    for (size_t i = 0; i < n; ++i) words[i] = stored[i] >> from & keep * kEachByte;
}

// The same, added at bit `to`.
template <size_t n>
inline void add_bits(SourceBytes bytes, unsigned from, uint32_t keep, unsigned to, uint32_t* words) {
    uint32_t stored[n];
    std::memcpy(stored, bytes, sizeof stored);
    for (size_t i = 0; i < n; ++i) words[i] |= (stored[i] >> from & keep * kEachByte) << to;
}

// Sixteen bytes of nibbles: values 0..15 below, 16..31 above.
inline void read_nibbles(SourceBytes nibbles, uint32_t* words) {
    read_bits<4>(nibbles, 0, 15, words);
    read_bits<4>(nibbles, 4, 15, words + 4);
}

// Bit k of `high` is the fifth bit of value k.
inline void add_fifth_bits(SourceBytes high, uint32_t* words) {
    uint32_t bits;
    std::memcpy(&bits, high, sizeof bits);
    for (unsigned i = 0; i < 8; ++i) {
        const uint32_t four = bits >> (4 * i) & 15;
        words[i] |= ((four | four << 7 | four << 14 | four << 21) & kEachByte) << 4;
    }
}

// Columns 32 * tile .. of a row of a quantised type that can be packed.
template <TensorType type>
SourceTile source_tile(SourceBytes row, size_t tile);

template <>
inline SourceTile source_tile<TensorType::kQ4_0>(SourceBytes row, size_t tile) {
    SourceTile t;
    const SourceBytes block = row + 18 * tile;
    t.scales = {read_u16(block), 0, {}};
    read_nibbles(block + 2, t.words);
    return t;
}

template <>
inline SourceTile source_tile<TensorType::kQ4_1>(SourceBytes row, size_t tile) {
    SourceTile t;
    const SourceBytes block = row + 20 * tile;
    t.scales = {read_u16(block), read_u16(block + 2), {}};
    read_nibbles(block + 4, t.words);
    return t;
}

template <>
inline SourceTile source_tile<TensorType::kQ5_0>(SourceBytes row, size_t tile) {
    SourceTile t;
    const SourceBytes block = row + 22 * tile;
    t.scales = {read_u16(block), 0, {}};
    read_nibbles(block + 6, t.words);
    add_fifth_bits(block + 2, t.words);
    return t;
}

template <>
inline SourceTile source_tile<TensorType::kQ5_1>(SourceBytes row, size_t tile) {
    SourceTile t;
    const SourceBytes block = row + 24 * tile;
    t.scales = {read_u16(block), read_u16(block + 2), {}};
    read_nibbles(block + 8, t.words);
    add_fifth_bits(block + 4, t.words);
    return t;
}

template <>
inline SourceTile source_tile<TensorType::kQ8_0>(SourceBytes row, size_t tile) {
    SourceTile t;
    const SourceBytes block = row + 34 * tile;
    t.scales = {read_u16(block), 0, {}};
    read_bits<8>(block + 2, 0, 255, t.words);
    for (uint32_t& word : t.words) word ^= 0x80 * kEachByte;  // + 128
    return t;
}

template <>
inline SourceTile source_tile<TensorType::kQ2_K>(SourceBytes row, size_t tile) {
    SourceTile t;
    const SourceBytes block = row + 84 * (tile / kTilesInSuper);
    const size_t in_block = tile % kTilesInSuper;
    t.scales = {read_u16(block + 80), read_u16(block + 82), {block[2 * in_block], block[2 * in_block + 1]}};
    read_bits<8>(block + 16 + in_block / 4 * 32, static_cast<unsigned>(in_block % 4 * 2), 3, t.words);
    return t;
}

inline uint8_t q3_k_scale(SourceBytes scales, size_t sub) {
    const int low = sub < 8 ? scales[sub] & 15 : scales[sub - 8] >> 4;
    const int high = scales[8 + sub % 4] >> (sub / 4 * 2) & 3;
    return static_cast<uint8_t>((low | high << 4) - 32);
}

template <>
inline SourceTile source_tile<TensorType::kQ3_K>(SourceBytes row, size_t tile) {
    SourceTile t;
    const SourceBytes block = row + 110 * (tile / kTilesInSuper);
    const size_t in_block = tile % kTilesInSuper;
    t.scales = {
        read_u16(block + 108), 0, {q3_k_scale(block + 96, 2 * in_block), q3_k_scale(block + 96, 2 * in_block + 1)}};
    read_bits<8>(block + 32 + in_block / 4 * 32, static_cast<unsigned>(in_block % 4 * 2), 3, t.words);
    add_bits<8>(block, static_cast<unsigned>(in_block), 1, 2, t.words);
    return t;
}

struct ScaleAndMinimum {
    uint8_t scale, minimum;
};

inline ScaleAndMinimum k_scale(SourceBytes p, size_t sub) {
    if (sub < 4) return {static_cast<uint8_t>(p[sub] & 63), static_cast<uint8_t>(p[sub + 4] & 63)};
    return {static_cast<uint8_t>((p[sub + 4] & 15) | p[sub - 4] >> 6 << 4),
            static_cast<uint8_t>(p[sub + 4] >> 4 | p[sub] >> 6 << 4)};
}

template <>
inline SourceTile source_tile<TensorType::kQ4_K>(SourceBytes row, size_t tile) {
    SourceTile t;
    const SourceBytes block = row + 144 * (tile / kTilesInSuper);
    const size_t in_block = tile % kTilesInSuper;
    const ScaleAndMinimum s = k_scale(block + 4, in_block);
    t.scales = {read_u16(block), read_u16(block + 2), {s.scale, s.minimum}};
    read_bits<8>(block + 16 + in_block / 2 * 32, static_cast<unsigned>(in_block % 2 * 4), 15, t.words);
    return t;
}

template <>
inline SourceTile source_tile<TensorType::kQ5_K>(SourceBytes row, size_t tile) {
    SourceTile t;
    const SourceBytes block = row + 176 * (tile / kTilesInSuper);
    const size_t in_block = tile % kTilesInSuper;
    const ScaleAndMinimum s = k_scale(block + 4, in_block);
    t.scales = {read_u16(block), read_u16(block + 2), {s.scale, s.minimum}};
    read_bits<8>(block + 48 + in_block / 2 * 32, static_cast<unsigned>(in_block % 2 * 4), 15, t.words);
    add_bits<8>(block + 16, static_cast<unsigned>(in_block), 1, 4, t.words);
    return t;
}

template <>
inline SourceTile source_tile<TensorType::kQ6_K>(SourceBytes row, size_t tile) {
    SourceTile t;
    const SourceBytes block = row + 210 * (tile / kTilesInSuper);
    const size_t in_block = tile % kTilesInSuper;
    t.scales = {read_u16(block + 208), 0, {block[192 + 2 * in_block], block[192 + 2 * in_block + 1]}};
    const size_t half = in_block / 4, quarter = in_block % 4;
    read_bits<8>(block + 64 * half + 32 * (quarter % 2), static_cast<unsigned>(quarter / 2 * 4), 15, t.words);
    add_bits<8>(block + 128 + 32 * half, static_cast<unsigned>(2 * quarter), 3, 4, t.words);
    return t;
}

}  // namespace inlay::kernels
