// Weights in memory. As a rule all are packed for the matrix kernels on the way into one arena of large pages, by all
// workers: no tensor is ever held twice, and the source is not needed afterwards. Matrices may also be used where a
// source keeps them in memory: then each product packs the groups of rows that it needs, a few at a time, into a room
// of its thread. That gives the same bits, saves the arena, and takes longer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/pages.h"
#include "base/workers.h"
#include "kernels/packed_matrix.h"

namespace inlay {

class CpuWeights {
public:
    // Sizes of one tensor, packed; INLAY_E_UNSUPPORTED when no kernel reads its type.
    static uint64_t bytes_of(const TensorInfo& tensor);
    static uint64_t bytes_of(std::span<const TensorInfo* const> tensors);

    std::vector<WeightId> load(std::shared_ptr<PageProvider> provider, const ByteSource& source,
                               std::span<const TensorInfo* const> tensors, Workers& workers,
                               const Backend::Loading& loading);

    TensorType type(WeightId id) const { return weights_[id].matrix.type; }
    size_t n_cols(WeightId id) const { return weights_[id].matrix.n_cols; }
    size_t n_groups(WeightId id) const { return weights_[id].matrix.n_groups(); }
    // A weight of one row, as f32. Null for kNoWeight.
    const float* vector(WeightId id) const {
        return id == kNoWeight ? nullptr : reinterpret_cast<const float*>(weights_[id].matrix.data);
    }
    // The f32 values of one row of a matrix.
    void unpack_row(WeightId id, size_t row, float* out) const;

    // Calls work(matrix, first group) for packed matrices that together are the groups [first_group, end_group) of a
    // weight, in their order. `thread`: whose room may be used.
    template <typename Work>
    void for_packed(WeightId id, size_t first_group, size_t end_group, unsigned thread, const Work& work) const {
        const Weight& weight = weights_[id];
        if (!weight.rows) return work(packed_part(weight, first_group, end_group), first_group);
        const size_t step = groups_in_room(weight.group_bytes);
        for (size_t group = first_group; group < end_group; group += step) {
            const size_t n = step < end_group - group ? step : end_group - group;
            work(pack_part(weight, group, group + n, thread), group);
        }
    }

    // Memory taken: the arena and the threads' rooms.
    uint64_t bytes() const { return arena_.size(); }

private:
    struct Weight {
        kernels::PackedMatrix matrix;
        size_t group_bytes;
        const std::byte* rows;  // as they lie in the source, where `matrix` has no data
    };

    // These groups of a matrix, packed at `data`.
    static kernels::PackedMatrix part_of(const kernels::PackedMatrix& matrix, size_t first_group, size_t end_group,
                                         const std::byte* data);
    static kernels::PackedMatrix packed_part(const Weight& weight, size_t first_group, size_t end_group);
    static size_t groups_in_room(size_t group_bytes);
    kernels::PackedMatrix pack_part(const Weight& weight, size_t first_group, size_t end_group, unsigned thread) const;

    PageRange arena_;
    std::vector<Weight> weights_;
    std::byte* rooms_ = nullptr;  // [n_threads, room_bytes_]
    size_t room_bytes_ = 0;
};

}  // namespace inlay
