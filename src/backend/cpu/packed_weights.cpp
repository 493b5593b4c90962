#include "backend/cpu/packed_weights.h"

#include <string>

#include "backend/cpu/weight_loader.h"
#include "base/error.h"
#include "base/printable.h"

namespace inlay {
namespace {

constexpr uint64_t kAlignment = 64;

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

uint64_t PackedWeights::bytes_of(const TensorInfo& tensor) {
    if (is_vector(tensor)) {
        if (!kernels::can_pack(tensor.type, tensor.dims[0])) no_kernel(tensor);
        return round_up(tensor.dims[0] * sizeof(float), kAlignment);
    }
    if (!kernels::can_pack(tensor.type, tensor.dims[0])) no_kernel(tensor);
    const uint64_t n_groups = (tensor.dims[1] + kernels::kGroupRows - 1) / kernels::kGroupRows;
    return round_up(n_groups * kernels::packed_group_bytes(tensor.type, tensor.dims[0]), kAlignment);
}

uint64_t PackedWeights::bytes_of(std::span<const TensorInfo* const> tensors) {
    uint64_t bytes = 0;
    for (const TensorInfo* tensor : tensors) bytes += bytes_of(*tensor);
    return bytes;
}

std::vector<WeightId> PackedWeights::load(std::shared_ptr<PageProvider> provider, const ByteSource& source,
                                          std::span<const TensorInfo* const> tensors, Workers& workers,
                                          const Backend::Loading& loading) {
    arena_ = PageRange(std::move(provider), bytes_of(tensors), true);
    arena_.commit(0, arena_.size(), false);
    std::vector<TensorPlace> places;
    std::vector<WeightId> ids;
    std::byte* out = arena_.data();
    for (const TensorInfo* tensor : tensors) {
        places.push_back({tensor, is_vector(*tensor), out});
        ids.push_back(static_cast<WeightId>(weights_.size()));
        weights_.push_back(
            {tensor->type, checked_u32(tensor->dims[1], *tensor), checked_u32(tensor->dims[0], *tensor), out});
        out += bytes_of(*tensor);
    }
    load_tensors(source, places, workers, loading);
    return ids;
}

}  // namespace inlay
