// The functions of one table (kernels.h says what each does), declared in the namespace of the instruction set that is
// being compiled: a lanes header defines INLAY_ISA before this file is included.
//
// Objects built with instruction set flags hold symbols of their own namespace only. So kernels use no standard library
// templates, and of kernels.h only its plain structs: everything else is `static inline` or lies in the namespace
// INLAY_ISA.
#include "kernels/kernels.h"

#ifndef INLAY_ISA
#error "include a lanes header first"
#endif

namespace inlay::kernels::INLAY_ISA {

void quantize_rows(const float* x, size_t x_stride, size_t n_rows, size_t n_cols, std::byte* out);
void quantize_rows_twice(const float* x, size_t x_stride, size_t n_rows, size_t n_cols, std::byte* out,
                         std::byte* rest);
void multiply_quantized(const PackedMatrix& w, const std::byte* x, const std::byte* rest, size_t n_rows,
                        size_t first_group, size_t end_group, const float* bias, bool accumulate, float* y,
                        size_t y_stride);
void multiply_float(const PackedMatrix& w, const float* x, size_t x_stride, size_t n_rows, size_t first_group,
                    size_t end_group, const float* bias, bool accumulate, float* y, size_t y_stride);

void rms_norm(const float* x, size_t x_stride, const float* weight, float eps, size_t n_rows, size_t n_cols, float* y,
              size_t y_stride);
void silu_multiply(const float* gate, const float* up, size_t stride, size_t n_rows, size_t n_cols, float* out,
                   size_t out_stride);
void gelu_multiply(const float* gate, const float* up, size_t stride, size_t n_rows, size_t n_cols, float* out,
                   size_t out_stride);
void softmax_weights(const float* x, size_t n, float largest, float temperature, float* out);
void rope_rotate(float* x, size_t n_heads, size_t head_dim, const float* angles, size_t n_pairs, bool interleaved);

void rotate(float* x, size_t n_vectors, size_t dim);
void store_keys(const float* k, size_t head_dim, KvType type, size_t slot, std::byte* keys);
void store_values(const float* v, size_t value_dim, KvType type, size_t slot, std::byte* values);
void close_keys(const std::byte* tile, size_t head_dim, KvType type, std::byte* codes, std::byte* parameters);
void close_values(const std::byte* tile, size_t value_dim, KvType type, std::byte* codes, std::byte* parameters);
void attend(const AttentionTask& task, size_t first_split, size_t end_split, bool fresh, float* states);
void merge_attention(float* states, const float* later, size_t n_states, size_t value_dim);
void finish_attention(const float* states, size_t n_states, size_t value_dim, float* out);

// These functions as a table. A constant: no code runs to set it up.
extern const Kernels kTable;

}  // namespace inlay::kernels::INLAY_ISA
