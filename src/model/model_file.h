// A model's head and bytes, opened: from one file, or from the parts of a split one as if they were one.
#pragma once

#include <cstdint>
#include <memory>

#include "base/byte_source.h"
#include "model/gguf.h"
#include "model/model_source.h"

namespace inlay {

struct ModelFile {
    GgufFile head;
    std::shared_ptr<const ByteSource> bytes;  // that the tensors' offsets point into
    uint32_t n_parts = 1;

    // Reads the heads of all parts. Errors as GgufFile::read; those of parts say which.
    static ModelFile open(ModelSource& source);
};

}  // namespace inlay
