// Inverse frequencies of rotary position embedding, and the ways to stretch them over a longer context.
#pragma once

#include <cstdint>
#include <span>

#include "model/model_spec.h"

namespace inlay {

// base^(-2i / n_dims) for i below n_dims / 2.
RopeSpec plain_rope(double base, uint32_t n_dims);

// Positions are divided by `factor`.
void scale_linear(RopeSpec& rope, double factor);

// YaRN (Peng et al. 2023, section 3.4): dimensions that turn fast within the original context keep their frequency,
// slow ones are interpolated by `factor`, with a ramp between; cos and sin grow by the attention factor.
struct YarnScaling {
    double factor = 1;
    double original_context = 0;
    double extrapolation = 1;  // weight of the kept frequencies
    double attention_factor = 1;
    double beta_fast = 32;  // turns within the original context from which on a frequency is kept
    double beta_slow = 1;   // and below which it is interpolated
};
void scale_yarn(RopeSpec& rope, double base, const YarnScaling& yarn);

// Divides each frequency by its own factor (llama 3, longrope). factors: [n_pairs]
void divide_by_factors(RopeSpec& rope, std::span<const float> factors);

}  // namespace inlay
