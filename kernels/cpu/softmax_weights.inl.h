// The weights of sampling; the definition is reference/softmax_weights.cpp.
namespace inlay::kernels::INLAY_ISA {

void softmax_weights(const float* x, size_t n, float largest, float temperature, float* out) {
    const F32x16 top = broadcast(largest);
    const F32x16 divisor = broadcast(temperature);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) store(out + i, exp((load(x + i) - top) / divisor));
    if (i < n) store_partial(out + i, exp((load_partial(x + i, n - i) - top) / divisor), n - i);
}

}  // namespace inlay::kernels::INLAY_ISA
