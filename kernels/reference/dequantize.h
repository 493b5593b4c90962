// Quantised blocks to f32: the definition of what a stored weight is worth. Every kernel that reads a packed format is
// compared with this.
#pragma once

#include <cstddef>

#include "base/tensor_type.h"

namespace inlay {

// The types `dequantize` knows: F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0 and Q2_K to Q6_K.
bool can_dequantize(TensorType type);

// Writes `n_values` values (a multiple of the type's block size). `blocks` needs no alignment. A type that
// `can_dequantize` refuses writes nothing.
void dequantize(TensorType type, const void* blocks, size_t n_values, float* out);

}  // namespace inlay
