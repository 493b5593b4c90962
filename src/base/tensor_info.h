// One tensor of a model file: what it is and where its values lie.
#pragma once

#include <cstdint>
#include <string>

#include "base/tensor_type.h"

namespace inlay {

struct TensorInfo {
    std::string name;
    TensorType type;
    uint32_t n_dims;
    uint64_t dims[4];  // dims[0] is the contiguous inner one; unused ones are 1
    uint64_t offset;   // in the file
    uint64_t bytes;
};

}  // namespace inlay
