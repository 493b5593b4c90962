// The definition of paged attention; see the members of `Kernels` for what each function does, docs/numerics.md for the
// arithmetic.
#pragma once

#include "kernels/kernels.h"

namespace inlay::kernels {

void reference_store_keys(const float* k, size_t head_dim, KvType type, size_t slot, std::byte* keys);
void reference_store_values(const float* v, size_t value_dim, KvType type, size_t slot, std::byte* values);
void reference_attend(const AttentionTask& task, size_t first_split, size_t end_split, bool fresh, float* states);
void reference_merge_attention(float* states, const float* later, size_t n_states, size_t value_dim);
void reference_finish_attention(const float* states, size_t n_states, size_t value_dim, float* out);

}  // namespace inlay::kernels
