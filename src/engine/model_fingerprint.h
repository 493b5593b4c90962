// What tells a model file from another: made of the head of the file, its tensor table and a sample of its tensors.
#pragma once

#include <cstdint>

#include "base/byte_source.h"
#include "model/gguf.h"

namespace inlay {

struct ModelFingerprint {
    uint64_t low = 0;
    uint64_t high = 0;

    bool operator==(const ModelFingerprint&) const = default;
};

// Reads the head and at most 512 KiB of tensors. Two models of one shape with one vocabulary, as a fine-tuned one and
// its base, differ in nearly all tensors: a few bytes from the middle of each tell them apart.
ModelFingerprint fingerprint_of(const GgufFile& head, const ByteSource& source);

}  // namespace inlay
