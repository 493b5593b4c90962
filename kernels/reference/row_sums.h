// Sums and maxima over one row by 16 virtual lanes: element i belongs to lane i mod 16, and the lanes are folded in
// halves. A processor with any vector width up to 16 computes them the same way.
#pragma once

#include <array>
#include <cstddef>

namespace inlay::kernels {

using VirtualLanes = std::array<float, 16>;

inline float fold_sum(VirtualLanes lanes) {
    for (size_t half = 8; half > 0; half /= 2) {
        for (size_t i = 0; i < half; ++i) lanes[i] = lanes[i] + lanes[i + half];
    }
    return lanes[0];
}

// The second operand where they compare equal or not at all.
inline float larger(float a, float b) {
    return a > b ? a : b;
}

inline float fold_max(VirtualLanes lanes) {
    for (size_t half = 8; half > 0; half /= 2) {
        for (size_t i = 0; i < half; ++i) lanes[i] = larger(lanes[i], lanes[i + half]);
    }
    return lanes[0];
}

}  // namespace inlay::kernels
