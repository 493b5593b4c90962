// The vocabulary in the head of a GGUF file.
#pragma once

#include "model/gguf.h"
#include "text/vocabulary.h"

namespace inlay {

// Reads the keys "tokenizer.ggml.*" and recognises special tokens that the file does not name. INLAY_E_FORMAT naming
// the key that is missing or contradicts the others. Ids of special tokens outside the vocabulary count as not given:
// files write "none" so.
Vocabulary vocabulary_from_gguf(const GgufFile& file);

}  // namespace inlay
