// What the codes of a closed block mean: integers and the scales that make values of them; and how they are set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/kv_type.h"
#include "kernels/quantized_kv.h"
#include "kernels/reference/half.h"

namespace inlay::kernels {

inline uint16_t load_u16(const std::byte* p, size_t index) {
    uint16_t x;
    std::memcpy(&x, p + index * sizeof x, sizeof x);
    return x;
}
inline void store_u16(std::byte* p, size_t index, uint16_t x) {
    std::memcpy(p + index * sizeof x, &x, sizeof x);
}

// Where a code lies: an 8-bit one at `index`, a 4-bit one at bits `shift`.. of the 16-bit integer `index`.
struct CodePlace {
    size_t index;
    unsigned shift;
};
inline size_t int8_key_place(size_t d, size_t token) {
    return (d / 2 * kBlockTokens + token) * 2 + d % 2;
}
inline size_t int8_value_place(size_t channel, size_t token, size_t dim) {
    return (token / 2 * ((dim + 15) / 16 * 16) + channel) * 2 + token % 2;
}
inline CodePlace int4_key_place(size_t d, size_t token) {
    return {(d / 8 * kBlockTokens + token) * 2 + d % 2, static_cast<unsigned>(d % 8 / 2 * 4)};
}
inline CodePlace int4_value_place(size_t channel, size_t token) {
    return {((channel / 16 * 2 + token / 8) * 16 + channel % 16) * 2 + token % 2,
            static_cast<unsigned>(token % 8 / 2 * 4)};
}
inline int32_t load_nibble(const std::byte* codes, CodePlace place) {
    return load_u16(codes, place.index) >> place.shift & 15;
}
// Into codes that were 0.
inline void set_nibble(std::byte* codes, CodePlace place, int32_t code) {
    const unsigned bits = load_u16(codes, place.index) | static_cast<unsigned>(code) << place.shift;
    store_u16(codes, place.index, static_cast<uint16_t>(bits));
}

// The parameters of 4-bit keys: f16 S, u16 r, u8 scale codes, i8 minimum codes.
struct Int4KeyParameters {
    const std::byte* bytes;
    size_t dim;

    float scale() const { return half_to_float(load_u16(bytes, 0)); }
    int32_t minimum_unit() const { return load_u16(bytes, 1); }
    int32_t scale_code(size_t d) const { return static_cast<uint8_t>(bytes[4 + d]); }
    int32_t minimum_code(size_t d) const { return static_cast<int8_t>(bytes[4 + dim + d]); }
};

// A key is scale * integer; 16 bits hold the integer.
inline int32_t key_integer(KvType type, const std::byte* codes, const std::byte* parameters, size_t dim, size_t d,
                           size_t token) {
    if (type == KvType::kInt8) return static_cast<int8_t>(codes[int8_key_place(d, token)]);
    const Int4KeyParameters p = {parameters, dim};
    return p.scale_code(d) * load_nibble(codes, int4_key_place(d, token)) + p.minimum_unit() * p.minimum_code(d);
}
inline float key_scale(KvType type, const std::byte* parameters, size_t dim, size_t d, size_t token) {
    if (type == KvType::kInt4) return Int4KeyParameters{parameters, dim}.scale();
    return half_to_float(load_u16(parameters, d / kKeyGroup * kBlockTokens + token));
}

inline int32_t value_integer(KvType type, const std::byte* codes, size_t dim, size_t channel, size_t token) {
    if (type == KvType::kInt8) return static_cast<int8_t>(codes[int8_value_place(channel, token, dim)]);
    return kValueLevels[load_nibble(codes, int4_value_place(channel, token))];
}
inline float value_scale(const std::byte* parameters, size_t token) {
    return half_to_float(load_u16(parameters, token));
}

}  // namespace inlay::kernels
