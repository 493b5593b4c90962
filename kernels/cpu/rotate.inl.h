// The Walsh-Hadamard transform; the definition is reference/rotate.cpp.
namespace inlay::kernels::INLAY_ISA {

// Lanes that lie `distance` apart become their sum and their difference.
template <size_t distance>
INLAY_LANES F32x16 combine_lanes(F32x16 x) {
    alignas(64) float signs[16];
    for (size_t i = 0; i < 16; ++i) signs[i] = i & distance ? -1.0f : 1.0f;
    return swap_lanes<distance>(x) + x * load(signs);
}

INLAY_LANES F32x16 combine_eight(F32x16 x) {
    return combine_lanes<4>(combine_lanes<2>(combine_lanes<1>(x)));
}

// One piece of n = 16 * 2^k.
INLAY_LANES void rotate_piece(float* x, size_t n, float factor) {
    for (size_t i = 0; i < n; i += 16) store(x + i, combine_lanes<8>(combine_eight(load(x + i))));
    for (size_t stride = 16; stride < n; stride *= 2) {
        for (size_t begin = 0; begin < n; begin += 2 * stride) {
            for (size_t i = begin; i < begin + stride; i += 16) {
                const F32x16 a = load(x + i);
                const F32x16 b = load(x + i + stride);
                store(x + i, a + b);
                store(x + i + stride, a - b);
            }
        }
    }
    for (size_t i = 0; i < n; i += 16) store(x + i, load(x + i) * broadcast(factor));
}

void rotate(float* x, size_t n_vectors, size_t dim) {
    // 1 / sqrt(n) for n = 256, 128, 64, 32, 16 and 8.
    constexpr float kRotationFactors[] = {0x1p-4f, 0x1.6a09e6p-4f, 0x1p-3f, 0x1.6a09e6p-3f, 0x1p-2f, 0x1.6a09e6p-2f};
    for (size_t vector = 0; vector < n_vectors; ++vector) {
        size_t rest = dim;
        for (size_t i = 0; rest >= 16; ++i) {
            const size_t n = size_t{256} >> i;
            if (n > rest) continue;
            rotate_piece(x, n, kRotationFactors[i]);
            x += n;
            rest -= n;
        }
        if (rest == 0) continue;
        store_partial(x, combine_eight(load_partial(x, 8)) * broadcast(kRotationFactors[5]), 8);
        x += 8;
    }
}

}  // namespace inlay::kernels::INLAY_ISA
