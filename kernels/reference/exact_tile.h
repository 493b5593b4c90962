// Elements of the exact tiles of keys and values. A tile may lie at any address.
#pragma once

#include <cstddef>
#include <cstring>

#include "kernels/kv_type.h"
#include "kernels/reference/half.h"

namespace inlay::kernels {

// `type` is an exact one.
inline float load_element(KvType type, const std::byte* tile, size_t index) {
    if (type == KvType::kF32) {
        float value;
        std::memcpy(&value, tile + index * sizeof value, sizeof value);
        return value;
    }
    uint16_t half;
    std::memcpy(&half, tile + index * sizeof half, sizeof half);
    return type == KvType::kF16 ? half_to_float(half) : bfloat16_to_float(half);
}

inline void store_element(KvType type, float value, std::byte* tile, size_t index) {
    if (type == KvType::kF32) {
        std::memcpy(tile + index * sizeof value, &value, sizeof value);
        return;
    }
    const uint16_t half = type == KvType::kF16 ? float_to_half(value) : float_to_bfloat16(value);
    std::memcpy(tile + index * sizeof half, &half, sizeof half);
}

}  // namespace inlay::kernels
