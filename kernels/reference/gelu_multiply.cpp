// The gated activation of a feed-forward layer: gelu(gate) * up. From 0.5 x (1 + tanh u) and tanh u = 1 - 2 / (e^2u +
// 1) follows x / (1 + e^-2u), with u = sqrt(2 / pi) (x + 0.044715 x^3).
#include <cmath>

#include "kernels/reference/exp.h"
#include "kernels/reference/gelu_constants.h"
#include "kernels/reference/row_functions.h"

namespace inlay::kernels {

void reference_gelu_multiply(const float* gate, const float* up, size_t stride, size_t n_rows, size_t n_cols,
                             float* out, size_t out_stride) {
    for (size_t row = 0; row < n_rows; ++row) {
        for (size_t i = 0; i < n_cols; ++i) {
            const float x = gate[row * stride + i];
            const float minus_2u = x * std::fma(x * x, kGeluCubic, kGeluLinear);
            const float gelu = x / (1.0f + reference_exp(minus_2u));
            out[row * out_stride + i] = gelu * up[row * stride + i];
        }
    }
}

}  // namespace inlay::kernels
