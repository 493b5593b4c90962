// The gated activation gelu(gate) * up; the definition is reference/gelu_multiply.cpp.
#include "kernels/reference/gelu_constants.h"

namespace inlay::kernels::INLAY_ISA {

INLAY_LANES F32x16 gelu(F32x16 x) {
    const F32x16 minus_2u = x * fma(x * x, broadcast(kGeluCubic), broadcast(kGeluLinear));
    return x / (broadcast(1.0f) + exp(minus_2u));
}

void gelu_multiply(const float* gate, const float* up, size_t stride, size_t n_rows, size_t n_cols, float* out,
                   size_t out_stride) {
    gate_rows<gelu>(gate, up, stride, n_rows, n_cols, out, out_stride);
}

}  // namespace inlay::kernels::INLAY_ISA
