// The definitions of rotating and of closing blocks; see the members of `Kernels` for what each function does,
// docs/numerics.md for the arithmetic.
#pragma once

#include <cstddef>

#include "kernels/kv_type.h"

namespace inlay::kernels {

void reference_rotate(float* x, size_t n_vectors, size_t dim);
void reference_close_keys(const std::byte* tile, size_t head_dim, KvType type, std::byte* codes, std::byte* parameters);
void reference_close_values(const std::byte* tile, size_t value_dim, KvType type, std::byte* codes,
                            std::byte* parameters);

}  // namespace inlay::kernels
