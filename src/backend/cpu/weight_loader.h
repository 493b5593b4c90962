// The tensors of a model file into the form of the kernels. Where a tensor's bytes lie in memory they are packed from
// there; a source that serves any thread is read by all workers; one that does not, by the calling thread for all to
// pack.
#pragma once

#include <cstddef>
#include <span>

#include "backend/backend.h"
#include "base/byte_source.h"
#include "base/tensor_info.h"
#include "base/workers.h"

namespace inlay {

// A tensor and where it goes: packed groups, or f32 values of a vector.
struct TensorPlace {
    const TensorInfo* tensor;
    bool is_vector;
    std::byte* out;
};

// `places` lie one after the other, from a large page's begin on where there are such. n_bytes_done: of the file, that
// count as loaded already. Throws what reading throws, or `loading` does.
void load_tensors(const ByteSource& source, std::span<const TensorPlace> places, Workers& workers,
                  const Backend::Loading& loading, uint64_t n_bytes_done = 0);

}  // namespace inlay
