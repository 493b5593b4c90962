// INLAY_KV_* as the library's own type.
#pragma once

#include "api/boundary.h"
#include "kernels/kernels.h"

namespace inlay::api {

inline kernels::KvType kv_type(int32_t value, const char* name) {
    if (value == INLAY_KV_DEFAULT || value == INLAY_KV_F16) return kernels::KvType::kF16;
    if (value == INLAY_KV_F32) return kernels::KvType::kF32;
    if (value == INLAY_KV_BF16) return kernels::KvType::kBf16;
    if (value == INLAY_KV_INT8) return kernels::KvType::kInt8;
    if (value == INLAY_KV_INT4) return kernels::KvType::kInt4;
    invalid(std::string(name) + " is " + std::to_string(value) + ", which is no INLAY_KV_* value");
}

}  // namespace inlay::api
