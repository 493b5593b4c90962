// function(gate) * up over rows: what the gated activations share.
namespace inlay::kernels::INLAY_ISA {

template <F32x16 (*function)(F32x16)>
static void gate_rows(const float* gate, const float* up, size_t stride, size_t n_rows, size_t n_cols, float* out,
                      size_t out_stride) {
    for (size_t row = 0; row < n_rows; ++row) {
        const float* g = gate + row * stride;
        const float* u = up + row * stride;
        float* o = out + row * out_stride;
        size_t i = 0;
        for (; i + 16 <= n_cols; i += 16) store(o + i, function(load(g + i)) * load(u + i));
        if (i < n_cols) {
            const size_t rest = n_cols - i;
            store_partial(o + i, function(load_partial(g + i, rest)) * load_partial(u + i, rest), rest);
        }
    }
}

}  // namespace inlay::kernels::INLAY_ISA
