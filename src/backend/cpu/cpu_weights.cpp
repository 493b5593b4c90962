#include "backend/cpu/cpu_weights.h"

#include <algorithm>
#include <string>

#include "backend/cpu/weight_loader.h"
#include "base/error.h"
#include "base/printable.h"
#include "kernels/reference/dequantize.h"

namespace inlay {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr size_t kRoomBytes = size_t{1} << 17;  // stays near the thread beside a few rows of activations
constexpr size_t kMostGroupsInRoom = 4;

// Norm weights and biases. A matrix of one row is packed like other matrices of its width would be, which wastes
// fifteen rows; no architecture has one.
bool is_vector(const TensorInfo& tensor) {
    return tensor.dims[1] == 1;
}

uint64_t round_up(uint64_t value, uint64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

uint32_t checked_u32(uint64_t value, const TensorInfo& tensor) {
    if (value > UINT32_MAX)
        throw Error(INLAY_E_UNSUPPORTED, "tensor '" + printable(tensor.name, 96) + "' is too large");
    return static_cast<uint32_t>(value);
}

[[noreturn]] void no_kernel(const TensorInfo& tensor) {
    throw Error(INLAY_E_UNSUPPORTED, "tensor '" + printable(tensor.name, 96) + "': type " +
                                         std::string(name(tensor.type)) + " has no kernels");
}

}  // namespace

uint64_t CpuWeights::bytes_of(const TensorInfo& tensor) {
    if (!kernels::can_pack(tensor.type, tensor.dims[0])) no_kernel(tensor);
    if (is_vector(tensor)) return round_up(tensor.dims[0] * sizeof(float), kAlignment);
    const uint64_t n_groups = (tensor.dims[1] + kernels::kGroupRows - 1) / kernels::kGroupRows;
    return round_up(n_groups * kernels::packed_group_bytes(tensor.type, tensor.dims[0]), kAlignment);
}

uint64_t CpuWeights::bytes_of(std::span<const TensorInfo* const> tensors) {
    uint64_t bytes = 0;
    for (const TensorInfo* tensor : tensors) bytes += bytes_of(*tensor);
    return bytes;
}

std::vector<WeightId> CpuWeights::load(std::shared_ptr<PageProvider> provider, const ByteSource& source,
                                       std::span<const TensorInfo* const> tensors, Workers& workers,
                                       const Backend::Loading& loading) {
    uint64_t arena_bytes = 0;
    uint64_t bytes_in_place = 0;  // of the file
    std::vector<WeightId> ids;
    for (const TensorInfo* tensor : tensors) {
        const uint64_t packed_bytes = bytes_of(*tensor);
        const kernels::PackedMatrix matrix{tensor->type, checked_u32(tensor->dims[1], *tensor),
                                           checked_u32(tensor->dims[0], *tensor), nullptr};
        const bool in_place = loading.in_place && !is_vector(*tensor);
        const std::byte* rows = in_place ? source.view(tensor->offset, tensor->bytes) : nullptr;
        ids.push_back(static_cast<WeightId>(weights_.size()));
        const size_t group_bytes = kernels::packed_group_bytes(matrix.type, matrix.n_cols);
        weights_.push_back({matrix, group_bytes, rows});
        if (rows) {
            bytes_in_place += tensor->bytes;
            room_bytes_ = std::max(room_bytes_, groups_in_room(group_bytes) * group_bytes);
        } else {
            arena_bytes += packed_bytes;
        }
    }
    arena_ = PageRange(std::move(provider), arena_bytes + workers.n_threads() * room_bytes_, true);
    arena_.commit(0, arena_.size(), false);
    rooms_ = arena_.data() + arena_bytes;

    std::vector<TensorPlace> places;
    std::byte* out = arena_.data();
    for (size_t i = 0; i < tensors.size(); ++i) {
        Weight& weight = weights_[ids[i]];
        if (weight.rows) continue;
        weight.matrix.data = out;
        places.push_back({tensors[i], is_vector(*tensors[i]), out});
        out += bytes_of(*tensors[i]);
    }
    load_tensors(source, places, workers, loading, bytes_in_place);
    return ids;
}

void CpuWeights::unpack_row(WeightId id, size_t row, float* out) const {
    const Weight& weight = weights_[id];
    const kernels::PackedMatrix& matrix = weight.matrix;
    if (weight.rows)
        dequantize(matrix.type, weight.rows + row * row_size(matrix.type, matrix.n_cols), matrix.n_cols, out);
    else
        kernels::unpack_row(matrix, row, out);
}

kernels::PackedMatrix CpuWeights::part_of(const kernels::PackedMatrix& matrix, size_t first_group, size_t end_group,
                                          const std::byte* data) {
    const size_t first_row = first_group * kernels::kGroupRows;
    const size_t n_rows = std::min<size_t>(matrix.n_rows - first_row, (end_group - first_group) * kernels::kGroupRows);
    return {matrix.type, static_cast<uint32_t>(n_rows), matrix.n_cols, data};
}

kernels::PackedMatrix CpuWeights::packed_part(const Weight& weight, size_t first_group, size_t end_group) {
    return part_of(weight.matrix, first_group, end_group, weight.matrix.data + first_group * weight.group_bytes);
}

size_t CpuWeights::groups_in_room(size_t group_bytes) {
    return std::clamp(kRoomBytes / group_bytes, size_t{1}, kMostGroupsInRoom);
}

kernels::PackedMatrix CpuWeights::pack_part(const Weight& weight, size_t first_group, size_t end_group,
                                            unsigned thread) const {
    std::byte* const room = rooms_ + thread * room_bytes_;
    const kernels::PackedMatrix part = part_of(weight.matrix, first_group, end_group, room);
    const size_t row_bytes = row_size(part.type, part.n_cols);
    kernels::pack_groups(part.type, weight.rows + first_group * kernels::kGroupRows * row_bytes, part.n_rows,
                         part.n_cols, room);
    return part;
}

}  // namespace inlay
