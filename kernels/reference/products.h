// The definitions of the matrix products; see the members of `Kernels` for what each does, docs/numerics.md for the
// arithmetic.
#pragma once

#include "kernels/kernels.h"

namespace inlay::kernels {

void reference_quantize_rows(const float* x, size_t x_stride, size_t n_rows, size_t n_cols, std::byte* out);
void reference_quantize_rows_twice(const float* x, size_t x_stride, size_t n_rows, size_t n_cols, std::byte* out,
                                   std::byte* rest);
void reference_multiply_quantized(const PackedMatrix& w, const std::byte* x, const std::byte* rest, size_t n_rows,
                                  size_t first_group, size_t end_group, const float* bias, bool accumulate, float* y,
                                  size_t y_stride);
void reference_multiply_float(const PackedMatrix& w, const float* x, size_t x_stride, size_t n_rows, size_t first_group,
                              size_t end_group, const float* bias, bool accumulate, float* y, size_t y_stride);

}  // namespace inlay::kernels
