// One matrix of a model file into the form of the kernels. Where its bytes lie in memory they are packed from there; a
// source that serves any thread is read by all workers; one that does not, by the calling thread for all to pack.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/byte_source.h"
#include "base/tensor_info.h"
#include "base/workers.h"

namespace inlay {

// `staging`: a buffer for each worker, kept from matrix to matrix. `out`: as many bytes as the packed groups take.
void load_matrix(const ByteSource& source, const TensorInfo& tensor, Workers& workers,
                 std::span<std::vector<std::byte>> staging, std::byte* out);

}  // namespace inlay
