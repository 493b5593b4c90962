// Rotary position embedding: pairs of channels are rotated by an angle that grows with the position.
#include <cmath>

#include "kernels/reference/row_functions.h"
#include "kernels/reference/sin_cos.h"

namespace inlay::kernels {

void reference_rope_angles(uint32_t position, const float* inverse_frequency, float magnitude, size_t n_pairs,
                           float* out) {
    for (size_t i = 0; i < n_pairs; ++i) {
        const SinCos turn = reference_sin_cos(static_cast<float>(position) * inverse_frequency[i]);
        out[i] = turn.cos * magnitude;
        out[n_pairs + i] = turn.sin * magnitude;
    }
}

void reference_rope_rotate(float* x, size_t n_heads, size_t head_dim, const float* angles, size_t n_pairs,
                           bool interleaved) {
    for (size_t head = 0; head < n_heads; ++head) {
        float* channels = x + head * head_dim;
        for (size_t i = 0; i < n_pairs; ++i) {
            float& first = channels[interleaved ? 2 * i : i];
            float& second = channels[interleaved ? 2 * i + 1 : i + n_pairs];
            const float x0 = first;
            const float x1 = second;
            const float c = angles[i];
            const float s = angles[n_pairs + i];
            first = std::fma(x0, c, -(x1 * s));
            second = std::fma(x1, c, x0 * s);
        }
    }
}

}  // namespace inlay::kernels
