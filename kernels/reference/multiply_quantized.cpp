// Products of quantised weights and 8-bit activations, one output at a time.
#include <cmath>

#include "kernels/packed_tile_row.h"
#include "kernels/quantized_rows.h"
#include "kernels/reference/products.h"

namespace inlay::kernels {
namespace {

struct SubBlockSums {
    int32_t dot = 0;
    int32_t x = 0;
};

SubBlockSums sums_of(const TileRow& w, const QuantizedBlock& x, size_t sub) {
    const size_t n = kTileCols / w.sub_blocks;
    SubBlockSums sums;
    for (size_t k = sub * n; k < sub * n + n; ++k) {
        sums.dot += (w.q[k] - w.zero) * x.q[k];
        sums.x += x.q[k];
    }
    return sums;
}

// rest: null, or what x leaves of the values.
float add_sub_block(const TileRow& w, const QuantizedBlock& x, const QuantizedBlock* rest, size_t sub, float total) {
    SubBlockSums sums = sums_of(w, x, sub);
    if (rest) {
        const SubBlockSums more = sums_of(w, *rest, sub);
        sums = {(sums.dot << kRestBits) + more.dot, (sums.x << kRestBits) + more.x};
    }
    const float d = rest ? rest->d : x.d;
    total = std::fma(static_cast<float>(sums.dot) * w.scale[sub], d, total);
    return w.has_offset ? std::fma(w.offset[sub], d * static_cast<float>(sums.x), total) : total;
}

}  // namespace

void reference_multiply_quantized(const PackedMatrix& w, const std::byte* x, const std::byte* rest, size_t n_rows,
                                  size_t first_group, size_t end_group, const float* bias, bool accumulate, float* y,
                                  size_t y_stride) {
    const size_t n_tiles = w.n_cols / kTileCols;
    const auto* blocks = reinterpret_cast<const QuantizedBlock*>(x);    // [n_rows, n_tiles]
    const auto* rests = reinterpret_cast<const QuantizedBlock*>(rest);  // [n_rows, n_tiles], or null
    for (size_t output = first_group * kGroupRows; output < end_group * kGroupRows && output < w.n_rows; ++output) {
        for (size_t row = 0; row < n_rows; ++row) {
            float total = 0.0f;
            for (size_t tile = 0; tile < n_tiles; ++tile) {
                const TileRow weights = unpack_tile_row(w, output, tile);
                const size_t block = row * n_tiles + tile;
                for (size_t sub = 0; sub < weights.sub_blocks; ++sub)
                    total = add_sub_block(weights, blocks[block], rests ? rests + block : nullptr, sub, total);
            }
            if (bias) total = total + bias[output];
            float& result = y[row * y_stride + output];
            result = accumulate ? result + total : total;
        }
    }
}

}  // namespace inlay::kernels
