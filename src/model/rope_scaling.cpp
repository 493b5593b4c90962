#include "model/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace inlay {
namespace {

// The pair of channels that makes `turns` turns within `context` positions, as a real number.
double pair_with_turns(double turns, double context, double n_dims, double base) {
    return n_dims * std::log(context / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
}

}  // namespace

RopeSpec plain_rope(double base, uint32_t n_dims) {
    RopeSpec rope;
    rope.inverse_frequency.resize(n_dims / 2);
    for (size_t i = 0; i < rope.inverse_frequency.size(); ++i)
        rope.inverse_frequency[i] = static_cast<float>(std::pow(base, -2.0 * static_cast<double>(i) / n_dims));
    return rope;
}

void scale_linear(RopeSpec& rope, double factor) {
    for (float& frequency : rope.inverse_frequency) frequency = static_cast<float>(frequency / factor);
}

void scale_yarn(RopeSpec& rope, double base, const YarnScaling& yarn) {
    const double n_pairs = static_cast<double>(rope.inverse_frequency.size());
    const double n_dims = 2 * n_pairs;
    const double low = std::max(0.0, std::floor(pair_with_turns(yarn.beta_fast, yarn.original_context, n_dims, base)));
    const double high =
        std::min(n_dims - 1, std::ceil(pair_with_turns(yarn.beta_slow, yarn.original_context, n_dims, base)));
    for (size_t i = 0; i < rope.inverse_frequency.size(); ++i) {
        const double ramp = std::clamp((static_cast<double>(i) - low) / std::max(0.001, high - low), 0.0, 1.0);
        const double kept = (1 - ramp) * yarn.extrapolation;
        const double frequency = rope.inverse_frequency[i];
        rope.inverse_frequency[i] = static_cast<float>(frequency / yarn.factor * (1 - kept) + frequency * kept);
    }
    const double stretch = yarn.extrapolation != 0 ? 1 + 0.1 * std::log(yarn.factor) : 1;
    rope.magnitude = static_cast<float>(yarn.attention_factor * stretch);
}

void divide_by_factors(RopeSpec& rope, std::span<const float> factors) {
    for (size_t i = 0; i < rope.inverse_frequency.size(); ++i) rope.inverse_frequency[i] /= factors[i];
}

}  // namespace inlay
