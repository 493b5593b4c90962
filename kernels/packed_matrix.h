// A weight matrix repacked for the matrix kernels: 16 rows (outputs) side by side, so that SIMD lanes are outputs and
// one sequential stream of memory feeds a product with any number of activation rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/tensor_type.h"

namespace inlay::kernels {

inline constexpr size_t kGroupRows = 16;  // rows of one group
inline constexpr size_t kTileCols = 32;   // columns of one tile, and of one activation block

struct PackedMatrix {
    TensorType type;
    uint32_t n_rows;        // outputs
    uint32_t n_cols;        // inner dimension
    const std::byte* data;  // 64-byte aligned; n_groups() groups of packed_group_bytes each

    size_t n_groups() const { return (n_rows + kGroupRows - 1) / kGroupRows; }
};

// Whether the kernels have a packed form for the type and inner dimension.
bool can_pack(TensorType type, size_t n_cols);
// Bytes of one packed group of 16 rows; 0 for a type without a packed form.
size_t packed_group_bytes(TensorType type, size_t n_cols);
// Packs up to 16 rows as they lie in a GGUF tensor; missing rows are packed as zeros.
void pack_group(TensorType type, const std::byte* rows, size_t n_rows, size_t n_cols, std::byte* group);
// The same for any number of rows, group after group.
void pack_groups(TensorType type, const std::byte* rows, size_t n_rows, size_t n_cols, std::byte* groups);
// The f32 values of one row, bit-equal to the type's reference dequantisation.
void unpack_row(const PackedMatrix& matrix, size_t row, float* out);

}  // namespace inlay::kernels
