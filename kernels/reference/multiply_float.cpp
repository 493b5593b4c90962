// Products with activations in f32, one output at a time. Weights are dequantised block by block.
#include <cmath>

#include "kernels/packed_tile_row.h"
#include "kernels/reference/half.h"
#include "kernels/reference/products.h"

#include <cstring>

namespace inlay::kernels {
namespace {

float packed_float(const PackedMatrix& w, size_t output, size_t column) {
    const std::byte* group = w.data + output / kGroupRows * packed_group_bytes(w.type, w.n_cols);
    const size_t index = column * kGroupRows + output % kGroupRows;
    float value;
    uint16_t half;
    std::memcpy(&half, group + 2 * index, sizeof half);
    if (w.type == TensorType::kF16) return half_to_float(half);
    if (w.type == TensorType::kBF16) return bfloat16_to_float(half);
    std::memcpy(&value, group + 4 * index, sizeof value);
    return value;
}

// Columns first..first + n of one output.
void weights_of_block(const PackedMatrix& w, size_t output, size_t first, size_t n, float* out) {
    if (!is_quantized(w.type)) {
        for (size_t k = 0; k < n; ++k) out[k] = packed_float(w, output, first + k);
        return;
    }
    const TileRow t = unpack_tile_row(w, output, first / kTileCols);
    for (size_t k = 0; k < n; ++k) {
        const size_t sub = k * t.sub_blocks / kTileCols;
        const float value = t.scale[sub] * static_cast<float>(t.q[k] - t.zero);
        out[k] = t.has_offset ? value + t.offset[sub] : value;
    }
}

float dot(const PackedMatrix& w, size_t output, const float* x) {
    float total = 0.0f;
    for (size_t first = 0; first < w.n_cols; first += kTileCols) {
        const size_t n = w.n_cols - first < kTileCols ? w.n_cols - first : kTileCols;
        float weights[kTileCols];
        weights_of_block(w, output, first, n, weights);
        float part = 0.0f;
        for (size_t k = 0; k < n; ++k) part = std::fma(weights[k], x[first + k], part);
        total = total + part;
    }
    return total;
}

}  // namespace

void reference_multiply_float(const PackedMatrix& w, const float* x, size_t x_stride, size_t n_rows, size_t first_group,
                              size_t end_group, const float* bias, bool accumulate, float* y, size_t y_stride) {
    for (size_t output = first_group * kGroupRows; output < end_group * kGroupRows && output < w.n_rows; ++output) {
        for (size_t row = 0; row < n_rows; ++row) {
            float total = dot(w, output, x + row * x_stride);
            if (bias) total = total + bias[output];
            float& result = y[row * y_stride + output];
            result = accumulate ? result + total : total;
        }
    }
}

}  // namespace inlay::kernels
