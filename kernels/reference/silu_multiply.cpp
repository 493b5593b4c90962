// The gated activation of a feed-forward layer: silu(gate) * up, silu(x) = x / (1 + e^-x).
#include "kernels/reference/exp.h"
#include "kernels/reference/row_functions.h"

namespace inlay::kernels {

void reference_silu_multiply(const float* gate, const float* up, size_t stride, size_t n_rows, size_t n_cols,
                             float* out, size_t out_stride) {
    for (size_t row = 0; row < n_rows; ++row) {
        for (size_t i = 0; i < n_cols; ++i) {
            const float x = gate[row * stride + i];
            const float silu = x / (1.0f + reference_exp(-x));
            out[row * out_stride + i] = silu * up[row * stride + i];
        }
    }
}

}  // namespace inlay::kernels
