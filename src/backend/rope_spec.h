// Rotary position embedding as the backend computes it.
#pragma once

#include <vector>

namespace inlay {

// Of one kind of layer.
struct RopeSpec {
    std::vector<float> inverse_frequency;  // [n_pairs]; scaling of any kind is already in it
    float magnitude = 1.0f;                // cos and sin are multiplied with it (yarn)
    bool interleaved = false;              // pairs of channels are (2i, 2i + 1), else (i, i + n_pairs)
};

}  // namespace inlay
