// The function of a gated feed-forward: its output times the up projection.
#pragma once

#include <cstdint>

namespace inlay {

enum class GateFunction : uint8_t {
    kSilu,
    kGelu  // in its form with tanh
};

}  // namespace inlay
