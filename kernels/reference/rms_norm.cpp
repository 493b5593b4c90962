// Root-mean-square normalisation of rows, by 16 virtual lanes.
#include <cmath>

#include "kernels/reference/row_functions.h"
#include "kernels/reference/row_sums.h"

namespace inlay::kernels {

static float square_sum(const float* x, size_t n) {
    VirtualLanes lanes{};
    for (size_t i = 0; i < n; ++i) lanes[i % 16] = std::fma(x[i], x[i], lanes[i % 16]);
    return fold_sum(lanes);
}

void reference_rms_norm(const float* x, size_t x_stride, const float* weight, float eps, size_t n_rows, size_t n_cols,
                        float* y, size_t y_stride) {
    for (size_t row = 0; row < n_rows; ++row) {
        const float* in = x + row * x_stride;
        float* out = y + row * y_stride;
        const float mean = square_sum(in, n_cols) / static_cast<float>(n_cols);
        const float reciprocal = 1.0f / std::sqrt(mean + eps);
        for (size_t i = 0; i < n_cols; ++i) out[i] = (in[i] * reciprocal) * weight[i];
    }
}

}  // namespace inlay::kernels
