// What closed blocks hold, read as kernels/kv_type.h draws them, in double precision and without the definition's code.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/kv_type.h"
#include "kernels/reference/half.h"

namespace inlay::test {

using kernels::kBlockTokens;
using kernels::KvType;

inline double half_at(const std::byte* p, size_t index) {
    uint16_t half;
    std::memcpy(&half, p + 2 * index, sizeof half);
    return static_cast<double>(half_to_float(half));
}
inline int signed_byte(std::byte b) {
    return static_cast<int8_t>(b);
}
// Bits 4 n.. of the 16-bit integer `index`.
inline int nibble_at(const std::byte* p, size_t index, size_t n) {
    return std::to_integer<int>(p[2 * index + n / 2]) >> (n % 2 * 4) & 15;
}

// [16 tokens, dim]
inline std::vector<double> decode_keys(KvType type, const std::byte* codes, const std::byte* parameters, size_t dim) {
    std::vector<double> keys(kBlockTokens * dim);
    for (size_t t = 0; t < kBlockTokens; ++t) {
        for (size_t d = 0; d < dim; ++d) {
            double& key = keys[t * dim + d];
            if (type == KvType::kInt8) {
                key = signed_byte(codes[d / 2 * 32 + t * 2 + d % 2]) * half_at(parameters, d / 64 * 16 + t);
            } else {
                const int code = nibble_at(codes + d / 8 * 64, t * 2 + d % 2, d % 8 / 2);
                const int unit = std::to_integer<int>(parameters[2]) + 256 * std::to_integer<int>(parameters[3]);
                const int scale = std::to_integer<int>(parameters[4 + d]);
                key = half_at(parameters, 0) * (scale * code + unit * signed_byte(parameters[4 + dim + d]));
            }
        }
    }
    return keys;
}

// [16 tokens, dim]
inline std::vector<double> decode_values(KvType type, const std::byte* codes, const std::byte* parameters, size_t dim) {
    constexpr int kUpperLevels[] = {6, 18, 31, 44, 58, 75, 96, 127};
    const size_t padded = (dim + 15) / 16 * 16;
    std::vector<double> values(kBlockTokens * dim);
    for (size_t t = 0; t < kBlockTokens; ++t) {
        for (size_t i = 0; i < dim; ++i) {
            int integer;
            if (type == KvType::kInt8) {
                integer = signed_byte(codes[t / 2 * padded * 2 + i * 2 + t % 2]);
            } else {
                const int code = nibble_at(codes + i / 16 * 128 + t / 8 * 64, i % 16 * 2 + t % 2, t % 8 / 2);
                integer = code < 8 ? -kUpperLevels[7 - code] : kUpperLevels[code - 8];
            }
            values[t * dim + i] = integer * half_at(parameters, t);
        }
    }
    return values;
}

}  // namespace inlay::test
