// The orthonormal Walsh-Hadamard transform (in Sylvester's order) that spreads outliers of keys and values over a head.
#include <bit>
#include <cmath>

#include "kernels/reference/close_block.h"

namespace inlay::kernels {
namespace {

void rotate_piece(float* x, size_t n) {
    for (size_t stride = 1; stride < n; stride *= 2) {
        for (size_t i = 0; i < n; ++i) {
            if (i & stride) continue;
            const float a = x[i];
            const float b = x[i + stride];
            x[i] = a + b;
            x[i + stride] = a - b;
        }
    }
    const auto factor = static_cast<float>(1.0 / std::sqrt(static_cast<double>(n)));
    for (size_t i = 0; i < n; ++i) x[i] = x[i] * factor;
}

}  // namespace

void reference_rotate(float* x, size_t n_vectors, size_t dim) {
    for (size_t vector = 0; vector < n_vectors; ++vector) {
        for (size_t rest = dim; rest > 0;) {
            const size_t n = std::bit_floor(rest);
            rotate_piece(x, n);
            x += n;
            rest -= n;
        }
    }
}

}  // namespace inlay::kernels
