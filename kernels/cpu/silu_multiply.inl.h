// The gated activation silu(gate) * up; the definition is reference/silu_multiply.cpp.
namespace inlay::kernels::INLAY_ISA {

INLAY_LANES F32x16 silu(F32x16 x) {
    return x / (broadcast(1.0f) + exp(negate(x)));
}

void silu_multiply(const float* gate, const float* up, size_t stride, size_t n_rows, size_t n_cols, float* out,
                   size_t out_stride) {
    gate_rows<silu>(gate, up, stride, n_rows, n_cols, out, out_stride);
}

}  // namespace inlay::kernels::INLAY_ISA
