// The model families that can be run. Each is one file that turns a GGUF file's metadata into a ModelSpec.
#pragma once

#include "base/byte_source.h"
#include "model/gguf.h"
#include "model/model_spec.h"

namespace inlay {

// The spec of the file's architecture; INLAY_E_UNSUPPORTED when there is none. `source` is read for small tensors that
// are part of the description, such as rope factors.
ModelSpec make_model_spec(const GgufFile& file, const ByteSource& source);

ModelSpec make_gemma3_spec(const GgufFile& file, const ByteSource& source);
ModelSpec make_llama_spec(const GgufFile& file, const ByteSource& source);

}  // namespace inlay
