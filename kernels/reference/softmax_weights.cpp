// The weights of sampling: a softmax before its division by the sum.
#include "kernels/reference/exp.h"
#include "kernels/reference/row_functions.h"

namespace inlay::kernels {

void reference_softmax_weights(const float* x, size_t n, float largest, float temperature, float* out) {
    for (size_t i = 0; i < n; ++i) out[i] = reference_exp((x[i] - largest) / temperature);
}

}  // namespace inlay::kernels
