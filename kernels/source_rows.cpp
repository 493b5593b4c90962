// The block layouts here are those of kernels/reference/dequantize.cpp, which explains them; this reads the integers
// that it multiplies.
#include "kernels/source_rows.h"

#include <cstring>

namespace inlay::kernels {
namespace {

using Bytes = const uint8_t*;

constexpr size_t kTilesInSuper = 8;

uint16_t read_u16(Bytes p) {
    return static_cast<uint16_t>(p[0] | p[1] << 8);
}

// Sixteen bytes of nibbles: values 0..15 below, 16..31 above.
void read_nibbles(Bytes nibbles, uint8_t* q) {
    for (size_t k = 0; k < 16; ++k) q[k] = nibbles[k] & 15;
    for (size_t k = 0; k < 16; ++k) q[16 + k] = nibbles[k] >> 4;
}

void add_fifth_bits(Bytes high, uint8_t* q) {
    uint32_t bits;
    std::memcpy(&bits, high, sizeof bits);
    for (size_t k = 0; k < 32; ++k) q[k] = static_cast<uint8_t>(q[k] | (bits >> k & 1) << 4);
}

SourceTile q4_0(Bytes row, size_t tile) {
    SourceTile t;
    const Bytes block = row + 18 * tile;
    t.scales = {read_u16(block), 0, {}};
    read_nibbles(block + 2, t.q);
    return t;
}

SourceTile q4_1(Bytes row, size_t tile) {
    SourceTile t;
    const Bytes block = row + 20 * tile;
    t.scales = {read_u16(block), read_u16(block + 2), {}};
    read_nibbles(block + 4, t.q);
    return t;
}

SourceTile q5_0(Bytes row, size_t tile) {
    SourceTile t;
    const Bytes block = row + 22 * tile;
    t.scales = {read_u16(block), 0, {}};
    read_nibbles(block + 6, t.q);
    add_fifth_bits(block + 2, t.q);
    return t;
}

SourceTile q5_1(Bytes row, size_t tile) {
    SourceTile t;
    const Bytes block = row + 24 * tile;
    t.scales = {read_u16(block), read_u16(block + 2), {}};
    read_nibbles(block + 8, t.q);
    add_fifth_bits(block + 4, t.q);
    return t;
}

SourceTile q8_0(Bytes row, size_t tile) {
    SourceTile t;
    const Bytes block = row + 34 * tile;
    t.scales = {read_u16(block), 0, {}};
    for (size_t k = 0; k < 32; ++k) t.q[k] = static_cast<uint8_t>(block[2 + k] ^ 0x80);  // + 128
    return t;
}

SourceTile q2_k(Bytes row, size_t tile) {
    SourceTile t;
    const Bytes block = row + 84 * (tile / kTilesInSuper);
    const size_t in_block = tile % kTilesInSuper;
    t.scales = {read_u16(block + 80), read_u16(block + 82), {block[2 * in_block], block[2 * in_block + 1]}};
    const Bytes pairs = block + 16 + in_block / 4 * 32;
    for (size_t k = 0; k < 32; ++k) t.q[k] = pairs[k] >> (in_block % 4 * 2) & 3;
    return t;
}

uint8_t q3_k_scale(Bytes scales, size_t sub) {
    const int low = sub < 8 ? scales[sub] & 15 : scales[sub - 8] >> 4;
    const int high = scales[8 + sub % 4] >> (sub / 4 * 2) & 3;
    return static_cast<uint8_t>((low | high << 4) - 32);
}

SourceTile q3_k(Bytes row, size_t tile) {
    SourceTile t;
    const Bytes block = row + 110 * (tile / kTilesInSuper);
    const size_t in_block = tile % kTilesInSuper;
    t.scales = {
        read_u16(block + 108), 0, {q3_k_scale(block + 96, 2 * in_block), q3_k_scale(block + 96, 2 * in_block + 1)}};
    const Bytes pairs = block + 32 + in_block / 4 * 32;
    for (size_t k = 0; k < 32; ++k) {
        const int low = pairs[k] >> (in_block % 4 * 2) & 3;
        t.q[k] = static_cast<uint8_t>(low | (block[k] >> in_block & 1) << 2);
    }
    return t;
}

struct ScaleAndMinimum {
    uint8_t scale, minimum;
};

ScaleAndMinimum k_scale(Bytes p, size_t sub) {
    if (sub < 4) return {static_cast<uint8_t>(p[sub] & 63), static_cast<uint8_t>(p[sub + 4] & 63)};
    return {static_cast<uint8_t>((p[sub + 4] & 15) | p[sub - 4] >> 6 << 4),
            static_cast<uint8_t>(p[sub + 4] >> 4 | p[sub] >> 6 << 4)};
}

SourceTile q4_k(Bytes row, size_t tile) {
    SourceTile t;
    const Bytes block = row + 144 * (tile / kTilesInSuper);
    const size_t in_block = tile % kTilesInSuper;
    const ScaleAndMinimum s = k_scale(block + 4, in_block);
    t.scales = {read_u16(block), read_u16(block + 2), {s.scale, s.minimum}};
    const Bytes nibbles = block + 16 + in_block / 2 * 32;
    for (size_t k = 0; k < 32; ++k) t.q[k] = nibbles[k] >> (in_block % 2 * 4) & 15;
    return t;
}

SourceTile q5_k(Bytes row, size_t tile) {
    SourceTile t;
    const Bytes block = row + 176 * (tile / kTilesInSuper);
    const size_t in_block = tile % kTilesInSuper;
    const ScaleAndMinimum s = k_scale(block + 4, in_block);
    t.scales = {read_u16(block), read_u16(block + 2), {s.scale, s.minimum}};
    const Bytes nibbles = block + 48 + in_block / 2 * 32;
    for (size_t k = 0; k < 32; ++k) {
        const int low = nibbles[k] >> (in_block % 2 * 4) & 15;
        t.q[k] = static_cast<uint8_t>(low | (block[16 + k] >> in_block & 1) << 4);
    }
    return t;
}

SourceTile q6_k(Bytes row, size_t tile) {
    SourceTile t;
    const Bytes block = row + 210 * (tile / kTilesInSuper);
    const size_t in_block = tile % kTilesInSuper;
    t.scales = {read_u16(block + 208), 0, {block[192 + 2 * in_block], block[192 + 2 * in_block + 1]}};
    const size_t half = in_block / 4, quarter = in_block % 4;
    const Bytes low = block + 64 * half + 32 * (quarter % 2);
    const Bytes high = block + 128 + 32 * half;
    for (size_t k = 0; k < 32; ++k) {
        const int low_bits = low[k] >> (quarter / 2 * 4) & 15;
        t.q[k] = static_cast<uint8_t>(low_bits | (high[k] >> (2 * quarter) & 3) << 4);
    }
    return t;
}

}  // namespace

SourceTile read_source_tile(TensorType type, const std::byte* row, size_t tile) {
    const Bytes bytes = reinterpret_cast<Bytes>(row);
    switch (type) {
        case TensorType::kQ4_0:
            return q4_0(bytes, tile);
        case TensorType::kQ4_1:
            return q4_1(bytes, tile);
        case TensorType::kQ5_0:
            return q5_0(bytes, tile);
        case TensorType::kQ5_1:
            return q5_1(bytes, tile);
        case TensorType::kQ8_0:
            return q8_0(bytes, tile);
        case TensorType::kQ2_K:
            return q2_k(bytes, tile);
        case TensorType::kQ3_K:
            return q3_k(bytes, tile);
        case TensorType::kQ4_K:
            return q4_k(bytes, tile);
        case TensorType::kQ5_K:
            return q5_k(bytes, tile);
        case TensorType::kQ6_K:
            return q6_k(bytes, tile);
        default:
            return {};
    }
}

}  // namespace inlay::kernels
