// Products with activations in f32; the definition is reference/multiply_float.cpp. A group's tile is 32 columns of
// sixteen weights: those of unquantised types are read where they lie, others are dequantised into a small buffer once
// for all rows of a pass.
namespace inlay::kernels::INLAY_ISA {

constexpr unsigned kFloatRows = INLAY_REGISTERS >= 32 ? 8 : INLAY_REGISTERS >= 8 ? 4 : 1;  // sums in registers
constexpr size_t kFloatRowsAtOnce = 64;

// Sixteen weights of one column, as they lie in memory.
struct F32Column {
    float value[16];
};
struct F16Column {
    uint16_t value[16];
};
struct Bf16Column {
    uint16_t value[16];
};
INLAY_LANES F32x16 load(const F32Column& c) {
    return load(c.value);
}
INLAY_LANES F32x16 load(const F16Column& c) {
    return load_f16(c.value);
}
INLAY_LANES F32x16 load(const Bf16Column& c) {
    return load_bf16(c.value);
}

// totals[r] += the block's columns times row r.
template <unsigned n_rows, typename Column>
INLAY_LANES void add_float_block(const Column* columns, size_t n_columns, const float* x, size_t x_stride,
                                 F32x16* totals) {
    F32x16 part[n_rows];
#pragma GCC unroll 16
    for (unsigned r = 0; r < n_rows; ++r) part[r] = zero();
    for (size_t k = 0; k < n_columns; ++k) {
        const F32x16 w = load(columns[k]);
#pragma GCC unroll 16
        for (unsigned r = 0; r < n_rows; ++r) part[r] = fma(w, broadcast(x[r * x_stride + k]), part[r]);
    }
#pragma GCC unroll 16
    for (unsigned r = 0; r < n_rows; ++r) totals[r] = totals[r] + part[r];
}

template <unsigned at_once, typename Column>
static void add_float_rows(const Column* columns, size_t n_columns, const float* x, size_t x_stride, size_t first,
                           size_t n_rows, F32x16* totals) {
    for (; first + at_once <= n_rows; first += at_once)
        add_float_block<at_once>(columns, n_columns, x + first * x_stride, x_stride, totals + first);
    if constexpr (at_once > 1) add_float_rows<at_once / 2>(columns, n_columns, x, x_stride, first, n_rows, totals);
}

// Columns 0..n_cols of unquantised weights.
template <typename Column>
static void add_float_group(const uint8_t* group, size_t n_cols, const float* x, size_t x_stride, size_t n_rows,
                            F32x16* totals) {
    const auto* columns = reinterpret_cast<const Column*>(group);
    for (size_t first = 0; first < n_cols; first += kTileCols) {
        const size_t n = n_cols - first < kTileCols ? n_cols - first : kTileCols;
        prefetch_after<kTileCols * sizeof(Column)>(reinterpret_cast<const uint8_t*>(columns + first));
        add_float_rows<kFloatRows>(columns + first, n, x + first, x_stride, 0, n_rows, totals);
    }
}

template <typename Kind>
INLAY_LANES void dequantize_tile(const WeightTile<Kind>& w, F32Column* columns) {
    for_each_constant<32>([&]<unsigned k>() __attribute__((always_inline)) {
        constexpr unsigned sub = k * Kind::sub_blocks / 32;
        const I32x16 q = column_of<k % 4>(w.q[k / 4]);
        F32x16 value = w.scale[sub] * to_float(q - broadcast(int32_t{Kind::zero}));
        if constexpr (Kind::has_offset) value = value + w.offset[sub];
        store(columns[k].value, value);
    });
}

template <TensorType type>
static void add_quantized_group(const uint8_t* group, size_t n_cols, const float* x, size_t x_stride, size_t n_rows,
                                F32x16* totals) {
    const auto add = [&](size_t tile, const uint8_t* strip, size_t in_strip) __attribute__((always_inline)) {
        WeightTile<typename Packed<type>::Kind> w;
        unpack_tile<type>(strip, in_strip, w);
        alignas(64) F32Column columns[kTileCols];
        dequantize_tile(w, columns);
        add_float_rows<kFloatRows>(columns, kTileCols, x + tile * kTileCols, x_stride, 0, n_rows, totals);
    };
    for_each_tile<type>(group, 0, n_cols / kTileCols, add);
}

// What differs between types.
struct FloatGroups {
    size_t bytes;  // of a group
    void (*add)(const uint8_t* group, size_t n_cols, const float* x, size_t x_stride, size_t n_rows, F32x16* totals);
};

template <typename Column>
INLAY_LANES FloatGroups unquantized_groups(size_t n_cols) {
    return {(n_cols * sizeof(Column) + 63) / 64 * 64, add_float_group<Column>};
}
template <TensorType type>
INLAY_LANES FloatGroups quantized_groups(size_t n_cols) {
    return {group_bytes<type>(n_cols / kTileCols), add_quantized_group<type>};
}

static FloatGroups float_groups(TensorType type, size_t n_cols) {
    switch (type) {
        case TensorType::kF32:
            return unquantized_groups<F32Column>(n_cols);
        case TensorType::kF16:
            return unquantized_groups<F16Column>(n_cols);
        case TensorType::kBF16:
            return unquantized_groups<Bf16Column>(n_cols);
        case TensorType::kQ4_0:
            return quantized_groups<TensorType::kQ4_0>(n_cols);
        case TensorType::kQ4_1:
            return quantized_groups<TensorType::kQ4_1>(n_cols);
        case TensorType::kQ5_0:
            return quantized_groups<TensorType::kQ5_0>(n_cols);
        case TensorType::kQ5_1:
            return quantized_groups<TensorType::kQ5_1>(n_cols);
        case TensorType::kQ8_0:
            return quantized_groups<TensorType::kQ8_0>(n_cols);
        case TensorType::kQ2_K:
            return quantized_groups<TensorType::kQ2_K>(n_cols);
        case TensorType::kQ3_K:
            return quantized_groups<TensorType::kQ3_K>(n_cols);
        case TensorType::kQ4_K:
            return quantized_groups<TensorType::kQ4_K>(n_cols);
        case TensorType::kQ5_K:
            return quantized_groups<TensorType::kQ5_K>(n_cols);
        case TensorType::kQ6_K:
            return quantized_groups<TensorType::kQ6_K>(n_cols);
        default:
            return {0, nullptr};
    }
}

void multiply_float(const PackedMatrix& w, const float* x, size_t x_stride, size_t n_rows, size_t first_group,
                    size_t end_group, const float* bias, bool accumulate, float* y, size_t y_stride) {
    const FloatGroups groups = float_groups(w.type, w.n_cols);
    if (!groups.add) return;
    const auto* data = reinterpret_cast<const uint8_t*>(w.data);
    for (size_t row = 0; row < n_rows; row += kFloatRowsAtOnce) {
        const size_t rows = n_rows - row < kFloatRowsAtOnce ? n_rows - row : kFloatRowsAtOnce;
        for (size_t group = first_group; group < end_group; ++group) {
            F32x16 totals[kFloatRowsAtOnce];
            for (size_t r = 0; r < rows; ++r) totals[r] = zero();
            groups.add(data + group * groups.bytes, w.n_cols, x + row * x_stride, x_stride, rows, totals);
            const Outputs out = outputs_of_group(w, group, bias, accumulate, y + row * y_stride, y_stride);
            for (size_t r = 0; r < rows; ++r) write_outputs(out, r, totals[r]);
        }
    }
}

}  // namespace inlay::kernels::INLAY_ISA
