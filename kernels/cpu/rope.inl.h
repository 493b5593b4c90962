// Rotary position embedding; the definition is reference/rope.cpp, which also computes the angles for every instruction
// set.
namespace inlay::kernels::INLAY_ISA {

// Pairs (i, i + n_pairs) of one head: sixteen, or `n`.
INLAY_LANES void rotate_halves(float* x0, float* x1, const float* cos, const float* sin) {
    const F32x16 first = load(x0);
    const F32x16 second = load(x1);
    const F32x16 c = load(cos);
    const F32x16 s = load(sin);
    store(x0, fma(first, c, negate(second * s)));
    store(x1, fma(second, c, first * s));
}
INLAY_LANES void rotate_halves(float* x0, float* x1, const float* cos, const float* sin, size_t n) {
    const F32x16 first = load_partial(x0, n);
    const F32x16 second = load_partial(x1, n);
    const F32x16 c = load_partial(cos, n);
    const F32x16 s = load_partial(sin, n);
    store_partial(x0, fma(first, c, negate(second * s)), n);
    store_partial(x1, fma(second, c, first * s), n);
}

// Pairs (2i, 2i + 1) of one head: eight from pair `i` on. The lanes of x0 take away x1 * s, those of x1 add x0 * s.
INLAY_LANES void rotate_neighbours(float* x, F32x16 c, F32x16 s, F32x16 signs) {
    const F32x16 own = load(x);
    store(x, fma(own, c, swap_neighbours(own) * s * signs));
}

void rope_rotate(float* x, size_t n_heads, size_t head_dim, const float* angles, size_t n_pairs, bool interleaved) {
    if (!interleaved) {
        for (size_t head = 0; head < n_heads; ++head) {
            float* x0 = x + head * head_dim;
            float* x1 = x0 + n_pairs;
            const float* sin = angles + n_pairs;
            size_t i = 0;
            for (; i + 16 <= n_pairs; i += 16) rotate_halves(x0 + i, x1 + i, angles + i, sin + i);
            if (i < n_pairs) rotate_halves(x0 + i, x1 + i, angles + i, sin + i, n_pairs - i);
        }
        return;
    }
    const float alternating[] = {-1.0f, 1.0f, -1.0f, 1.0f, -1.0f, 1.0f, -1.0f, 1.0f,
                                 -1.0f, 1.0f, -1.0f, 1.0f, -1.0f, 1.0f, -1.0f, 1.0f};
    const F32x16 signs = load(alternating);
    size_t i = 0;
    for (; i + 8 <= n_pairs; i += 8) {
        const F32x16 c = load_twice(angles + i);
        const F32x16 s = load_twice(angles + n_pairs + i);
        for (size_t head = 0; head < n_heads; ++head) rotate_neighbours(x + head * head_dim + 2 * i, c, s, signs);
    }
    if (i == n_pairs) return;
    // Fewer than eight pairs are left: they pass through buffers of full width.
    const size_t rest = n_pairs - i;
    float cos[8] = {};
    float sin[8] = {};
    for (size_t j = 0; j < rest; ++j) {
        cos[j] = angles[i + j];
        sin[j] = angles[n_pairs + i + j];
    }
    for (size_t head = 0; head < n_heads; ++head) {
        float* channels = x + head * head_dim + 2 * i;
        float buffer[16];
        store(buffer, load_partial(channels, 2 * rest));
        rotate_neighbours(buffer, load_twice(cos), load_twice(sin), signs);
        store_partial(channels, load(buffer), 2 * rest);
    }
}

}  // namespace inlay::kernels::INLAY_ISA
