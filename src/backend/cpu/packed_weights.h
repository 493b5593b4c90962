// Weights in memory as the matrix kernels want them. They are read by all workers, or taken from where they lie in
// memory, and packed on the way into one arena of large pages: no tensor is ever held twice, and the source is not
// needed afterwards.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/pages.h"
#include "base/workers.h"
#include "kernels/packed_matrix.h"

namespace inlay {

class PackedWeights {
public:
    // Sizes of one tensor in the arena; INLAY_E_UNSUPPORTED when no kernel reads its type.
    static uint64_t bytes_of(const TensorInfo& tensor);
    static uint64_t bytes_of(std::span<const TensorInfo* const> tensors);

    std::vector<WeightId> load(std::shared_ptr<PageProvider> provider, const ByteSource& source,
                               std::span<const TensorInfo* const> tensors, Workers& workers,
                               const Backend::Loading& loading);

    const kernels::PackedMatrix& matrix(WeightId id) const { return weights_[id]; }
    // A weight of one row, as f32. Null for kNoWeight.
    const float* vector(WeightId id) const {
        return id == kNoWeight ? nullptr : reinterpret_cast<const float*>(weights_[id].data);
    }
    uint64_t bytes() const { return arena_.size(); }

private:
    PageRange arena_;
    std::vector<kernels::PackedMatrix> weights_;
};

}  // namespace inlay
