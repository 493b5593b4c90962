// Products of quantised weights and 8-bit activations; the definition is reference/multiply_quantized.cpp.
//
// A few rows take each tile from memory into registers and go along the group once: reading the weights is all the work
// there is. More rows share a panel: a stretch of a group's tiles is unpacked once, and rows go over it a few at a
// time, as many as the registers hold sums for. Which way is taken changes no bit: an output's sum runs over its tiles
// in the same order.
#include "kernels/quantized_rows.h"

namespace inlay::kernels::INLAY_ISA {

constexpr size_t kStreamRows = INLAY_REGISTERS >= 32 ? 8 : 4;      // rows that go along a group together
constexpr size_t kPanelFromRows = INLAY_REGISTERS >= 32 ? 32 : 4;  // more rows than these are worth a panel
constexpr unsigned kPanelRows = INLAY_REGISTERS >= 32 ? 8 : INLAY_REGISTERS >= 8 ? 4 : 1;
constexpr size_t kPanelTiles = 24;        // a multiple of the tiles in a strip; 15 KiB, so that rows fit beside them
constexpr size_t kRowsAtOnce = 256;       // rows that go over all groups before the next ones come
constexpr size_t kRowsBytes = 768 << 10;  // their activations stay in the second cache level

// The quantised rows that a product works on.
struct QuantizedRows {
    const QuantizedBlock* first;  // row 0 at some tile
    size_t stride;                // blocks from row to row
    size_t rest;                  // blocks from a row to what it leaves of its values; only of rows quantised twice

    const QuantizedBlock* row(size_t r) const { return first + r * stride; }
    QuantizedRows from_row(size_t r) const { return {row(r), stride, rest}; }
    QuantizedRows from_tile(size_t tile) const { return {first + tile, stride, rest}; }
};

// Exact dot products of one sub-block with block `at` of each row.
template <unsigned n_rows, typename Kind>
INLAY_LANES void dot_rows(const WeightTile<Kind>& w, unsigned sub, const QuantizedBlock* const* rows, size_t at,
                          I32x16* dots) {
    constexpr unsigned vectors = 8 / Kind::sub_blocks;
    ByteDot<Kind::bits, Kind::zero> dot[n_rows];
#pragma GCC unroll 16
    for (unsigned r = 0; r < n_rows; ++r) {
        const QuantizedBlock& x = rows[r][at];
        start(dot[r], Kind::sub_blocks == 1 ? x.minus_128_sum : x.minus_128_half_sum[sub]);
    }
#pragma GCC unroll 8
    for (unsigned v = 0; v < vectors; ++v) {
        const U8x64 weights = w.q[sub * vectors + v];
#pragma GCC unroll 16
        for (unsigned r = 0; r < n_rows; ++r) add(dot[r], weights, rows[r][at].q + 4 * (sub * vectors + v));
    }
#pragma GCC unroll 16
    for (unsigned r = 0; r < n_rows; ++r) dots[r] = total(dot[r]);
}

// totals[r] += the tile times block `at` of row r, in the order of the definition.
template <bool twice, unsigned n_rows, typename Kind>
INLAY_LANES void add_tile(const WeightTile<Kind>& w, const QuantizedBlock* const* rows, size_t rest, size_t at,
                          F32x16* totals) {
    for (unsigned sub = 0; sub < Kind::sub_blocks; ++sub) {
        I32x16 dots[n_rows];
        dot_rows<n_rows>(w, sub, rows, at, dots);
        if constexpr (twice) {
            I32x16 rests[n_rows];
            dot_rows<n_rows>(w, sub, rows, at + rest, rests);
#pragma GCC unroll 16
            for (unsigned r = 0; r < n_rows; ++r) dots[r] = shift_left<kRestBits>(dots[r]) + rests[r];
        }
#pragma GCC unroll 16
        for (unsigned r = 0; r < n_rows; ++r) {
            const QuantizedBlock& x = rows[r][twice ? at + rest : at];
            totals[r] = fma(to_float(dots[r]) * w.scale[sub], broadcast(x.d), totals[r]);
            if constexpr (Kind::has_offset) {
                const float sum = Kind::sub_blocks == 1 ? x.sum : x.half_sum[sub];
                totals[r] = fma(w.offset[sub], broadcast(sum), totals[r]);
            }
        }
    }
}

// Rows first..first + n_rows - 1.
template <bool twice, TensorType type, unsigned n_rows>
static void stream_rows(const uint8_t* group, size_t n_tiles, const QuantizedRows& x, size_t first,
                        const Outputs& out) {
    const QuantizedBlock* rows[n_rows];
    F32x16 totals[n_rows];
    for (unsigned r = 0; r < n_rows; ++r) {
        rows[r] = x.row(first + r);
        totals[r] = zero();
    }
    const auto add = [&](size_t tile, const uint8_t* strip, size_t in_strip) __attribute__((always_inline)) {
        WeightTile<typename Packed<type>::Kind> w;
        unpack_tile<type>(strip, in_strip, w);
        add_tile<twice, n_rows>(w, rows, x.rest, tile, totals);
    };
    for_each_tile<type>(group, 0, n_tiles, add);
    for (unsigned r = 0; r < n_rows; ++r) write_outputs(out, first + r, totals[r]);
}

// totals: [n_rows], continued.
template <bool twice, unsigned n_rows, typename Kind>
INLAY_LANES void panel_rows(const WeightTile<Kind>* panel, size_t n_tiles, const QuantizedRows& x, F32x16* totals) {
    const QuantizedBlock* rows[n_rows];
    F32x16 total[n_rows];
#pragma GCC unroll 16
    for (unsigned r = 0; r < n_rows; ++r) {
        rows[r] = x.row(r);
        total[r] = totals[r];
    }
    for (size_t tile = 0; tile < n_tiles; ++tile) add_tile<twice, n_rows>(panel[tile], rows, x.rest, tile, total);
#pragma GCC unroll 16
    for (unsigned r = 0; r < n_rows; ++r) totals[r] = total[r];
}

// Rows a few at a time: first as many as fit, then halves.
template <bool twice, unsigned at_once, typename Kind>
static void panel_all_rows(const WeightTile<Kind>* panel, size_t n_tiles, const QuantizedRows& x, size_t first,
                           size_t n_rows, F32x16* totals) {
    for (; first + at_once <= n_rows; first += at_once)
        panel_rows<twice, at_once>(panel, n_tiles, x.from_row(first), totals + first);
    if constexpr (at_once > 1) panel_all_rows<twice, at_once / 2>(panel, n_tiles, x, first, n_rows, totals);
}

template <bool twice, TensorType type>
static void panel_group(const uint8_t* group, size_t n_tiles, const QuantizedRows& x, size_t n_rows,
                        const Outputs& out) {
    WeightTile<typename Packed<type>::Kind> panel[kPanelTiles];
    F32x16 totals[kRowsAtOnce];
    for (size_t r = 0; r < n_rows; ++r) totals[r] = zero();
    for (size_t first = 0; first < n_tiles; first += kPanelTiles) {
        const size_t tiles = n_tiles - first < kPanelTiles ? n_tiles - first : kPanelTiles;
        const auto unpack = [&](size_t tile, const uint8_t* strip, size_t in_strip) __attribute__((always_inline)) {
            unpack_tile<type>(strip, in_strip, panel[tile]);
        };
        for_each_tile<type>(group, first, tiles, unpack);
        panel_all_rows<twice, kPanelRows>(panel, tiles, x.from_tile(first), 0, n_rows, totals);
    }
    for (size_t r = 0; r < n_rows; ++r) write_outputs(out, r, totals[r]);
}

// 1..n_most rows from `first` on along the group.
template <bool twice, TensorType type, size_t n_most>
INLAY_LANES void stream_up_to(const uint8_t* group, size_t n_tiles, const QuantizedRows& x, size_t first, size_t n_rows,
                              const Outputs& out) {
    if (n_rows == n_most) return stream_rows<twice, type, n_most>(group, n_tiles, x, first, out);
    if constexpr (n_most > 1) stream_up_to<twice, type, n_most - 1>(group, n_tiles, x, first, n_rows, out);
}

// Structs by reference: copied as a whole right after their fields were written, they hold up each group.
template <bool twice, TensorType type>
static void multiply_group(const uint8_t* group, size_t n_tiles, const QuantizedRows& x, size_t n_rows,
                           const Outputs& out) {
    if (n_rows > kPanelFromRows) return panel_group<twice, type>(group, n_tiles, x, n_rows, out);
    size_t first = 0;
    for (; n_rows - first > kStreamRows; first += kStreamRows)
        stream_rows<twice, type, kStreamRows>(group, n_tiles, x, first, out);
    stream_up_to<twice, type, kStreamRows>(group, n_tiles, x, first, n_rows - first, out);
}

// Rows whose activations stay in the second cache level while all groups pass.
INLAY_LANES size_t rows_at_once(size_t row_bytes) {
    const size_t fit = kRowsBytes / row_bytes / 8 * 8;
    return fit < 8 ? 8 : fit < kRowsAtOnce ? fit : kRowsAtOnce;
}

template <bool twice, TensorType type>
static void multiply_typed(const PackedMatrix& w, const QuantizedRows& x, size_t n_rows, size_t first_group,
                           size_t end_group, const float* bias, bool accumulate, float* y, size_t y_stride) {
    const size_t n_tiles = w.n_cols / kTileCols;
    const size_t bytes = group_bytes<type>(n_tiles);
    const auto* data = reinterpret_cast<const uint8_t*>(w.data);
    const size_t step = rows_at_once(n_tiles * sizeof(QuantizedBlock) * (twice ? 2 : 1));
    for (size_t row = 0; row < n_rows; row += step) {
        const size_t rows = n_rows - row < step ? n_rows - row : step;
        const QuantizedRows these = x.from_row(row);
        for (size_t group = first_group; group < end_group; ++group) {
            const Outputs out = outputs_of_group(w, group, bias, accumulate, y + row * y_stride, y_stride);
            multiply_group<twice, type>(data + group * bytes, n_tiles, these, rows, out);
        }
    }
}

void multiply_quantized(const PackedMatrix& w, const std::byte* x, const std::byte* rest, size_t n_rows,
                        size_t first_group, size_t end_group, const float* bias, bool accumulate, float* y,
                        size_t y_stride) {
    const QuantizedRows rows = {reinterpret_cast<const QuantizedBlock*>(x), w.n_cols / kTileCols,
                                rest ? static_cast<size_t>(rest - x) / sizeof(QuantizedBlock) : 0};
    const auto multiply = [&]<TensorType type>() __attribute__((always_inline)) {
        if (rest)
            multiply_typed<true, type>(w, rows, n_rows, first_group, end_group, bias, accumulate, y, y_stride);
        else
            multiply_typed<false, type>(w, rows, n_rows, first_group, end_group, bias, accumulate, y, y_stride);
    };
    switch (w.type) {
        case TensorType::kQ4_0:
            return multiply.template operator()<TensorType::kQ4_0>();
        case TensorType::kQ4_1:
            return multiply.template operator()<TensorType::kQ4_1>();
        case TensorType::kQ5_0:
            return multiply.template operator()<TensorType::kQ5_0>();
        case TensorType::kQ5_1:
            return multiply.template operator()<TensorType::kQ5_1>();
        case TensorType::kQ8_0:
            return multiply.template operator()<TensorType::kQ8_0>();
        case TensorType::kQ2_K:
            return multiply.template operator()<TensorType::kQ2_K>();
        case TensorType::kQ3_K:
            return multiply.template operator()<TensorType::kQ3_K>();
        case TensorType::kQ4_K:
            return multiply.template operator()<TensorType::kQ4_K>();
        case TensorType::kQ5_K:
            return multiply.template operator()<TensorType::kQ5_K>();
        case TensorType::kQ6_K:
            return multiply.template operator()<TensorType::kQ6_K>();
        default:
            return;
    }
}

}  // namespace inlay::kernels::INLAY_ISA
