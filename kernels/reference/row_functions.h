// The definitions of the operations on rows of activations; see the members of `Kernels` for what each does.
#pragma once

#include <cstddef>
#include <cstdint>

namespace inlay::kernels {

void reference_rms_norm(const float* x, size_t x_stride, const float* weight, float eps, size_t n_rows, size_t n_cols,
                        float* y, size_t y_stride);
void reference_silu_multiply(const float* gate, const float* up, size_t stride, size_t n_rows, size_t n_cols,
                             float* out, size_t out_stride);
void reference_gelu_multiply(const float* gate, const float* up, size_t stride, size_t n_rows, size_t n_cols,
                             float* out, size_t out_stride);
void reference_softmax_weights(const float* x, size_t n, float largest, float temperature, float* out);
// Every table uses this one: it is called once per row, not per head.
void reference_rope_angles(uint32_t position, const float* inverse_frequency, float magnitude, size_t n_pairs,
                           float* out);
void reference_rope_rotate(float* x, size_t n_heads, size_t head_dim, const float* angles, size_t n_pairs,
                           bool interleaved);

}  // namespace inlay::kernels
