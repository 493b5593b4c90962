// The gated activation gelu(gate) * up; the definition is reference/gelu_multiply.cpp.
#include "kernels/reference/gelu_constants.h"

namespace inlay::kernels::INLAY_ISA {

INLAY_LANES F32x16 gelu(F32x16 x) {
    const F32x16 minus_2u = x * fma(x * x, broadcast(kGeluCubic), broadcast(kGeluLinear));
    return x / (broadcast(1.0f) + exp(minus_2u));
}

void gelu_multiply(const float* gate, const float* up, size_t stride, size_t n_rows, size_t n_cols, float* out,
                   size_t out_stride) {
    for (size_t row = 0; row < n_rows; ++row) {
        const float* g = gate + row * stride;
        const float* u = up + row * stride;
        float* o = out + row * out_stride;
        size_t i = 0;
        for (; i + 16 <= n_cols; i += 16) store(o + i, gelu(load(g + i)) * load(u + i));
        if (i < n_cols) {
            const size_t rest = n_cols - i;
            store_partial(o + i, gelu(load_partial(g + i, rest)) * load_partial(u + i, rest), rest);
        }
    }
}

}  // namespace inlay::kernels::INLAY_ISA
