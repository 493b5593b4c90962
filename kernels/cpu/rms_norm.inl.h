// Root-mean-square normalisation of rows; the definition is reference/rms_norm.cpp.
namespace inlay::kernels::INLAY_ISA {

// Lanes past the end hold zeros, which leave a square sum as it is.
INLAY_LANES float square_sum(const float* x, size_t n) {
    F32x16 sum = zero();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const F32x16 v = load(x + i);
        sum = fma(v, v, sum);
    }
    if (i < n) {
        const F32x16 v = load_partial(x + i, n - i);
        sum = fma(v, v, sum);
    }
    return fold_sum(sum);
}

void rms_norm(const float* x, size_t x_stride, const float* weight, float eps, size_t n_rows, size_t n_cols, float* y,
              size_t y_stride) {
    for (size_t row = 0; row < n_rows; ++row) {
        const float* in = x + row * x_stride;
        float* out = y + row * y_stride;
        const F32x16 mean = broadcast(square_sum(in, n_cols) / static_cast<float>(n_cols));
        const F32x16 reciprocal = broadcast(1.0f) / sqrt(mean + broadcast(eps));
        size_t i = 0;
        for (; i + 16 <= n_cols; i += 16) store(out + i, load(in + i) * reciprocal * load(weight + i));
        if (i < n_cols) {
            const size_t rest = n_cols - i;
            store_partial(out + i, load_partial(in + i, rest) * reciprocal * load_partial(weight + i, rest), rest);
        }
    }
}

}  // namespace inlay::kernels::INLAY_ISA
