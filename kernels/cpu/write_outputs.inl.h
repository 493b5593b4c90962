// The end of every product: sixteen outputs of one row, with bias and with what the row holds already.
namespace inlay::kernels::INLAY_ISA {

struct Outputs {
    float* y;           // [n_rows, y_stride], at the group's first output
    size_t y_stride;    //
    const float* bias;  // at the group's first output; null: none
    bool accumulate;
    size_t n;  // outputs of this group, 1..16
};

INLAY_LANES Outputs outputs_of_group(const PackedMatrix& w, size_t group, const float* bias, bool accumulate, float* y,
                                     size_t y_stride) {
    const size_t first = group * kGroupRows;
    const size_t left = w.n_rows - first;
    return {y + first, y_stride, bias ? bias + first : nullptr, accumulate, left < kGroupRows ? left : kGroupRows};
}

INLAY_LANES void write_outputs(const Outputs& out, size_t row, F32x16 total) {
    float* y = out.y + row * out.y_stride;
    if (out.n == kGroupRows) {
        if (out.bias) total = total + load(out.bias);
        if (out.accumulate) total = load(y) + total;
        store(y, total);
        return;
    }
    if (out.bias) total = total + load_partial(out.bias, out.n);
    if (out.accumulate) total = load_partial(y, out.n) + total;
    store_partial(y, total, out.n);
}

}  // namespace inlay::kernels::INLAY_ISA
