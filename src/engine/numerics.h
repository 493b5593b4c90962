// Which arithmetic computed a value: two engines with the same id compute the same bits from the same model.
#pragma once

#include <cstdint>

#include "backend/cpu/cpu_backend.h"

namespace inlay {

struct NumericsId {
    // Raised by every change that alters a bit of what kernels compute (docs/numerics.md).
    static constexpr uint32_t kRevision = 1;
    // Of blocks that were computed partly by one and partly by another: equal to none.
    static constexpr uint32_t kMixed = 0;

    uint32_t mode = kMixed;
    uint32_t revision = kRevision;

    bool operator==(const NumericsId&) const = default;
};

inline NumericsId numerics_of(ComputeMode compute) {
    return {compute == ComputeMode::kF32 ? 2u : 1u};
}

}  // namespace inlay
