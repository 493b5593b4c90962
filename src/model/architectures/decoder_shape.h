// What the metadata of all decoder families says in the same words: sizes, rope scaling, and which tensor of a layer
// fills which slot. An architecture file adds what is its own.
#pragma once

#include <cstdint>
#include <span>

#include "base/byte_source.h"
#include "model/gguf.h"
#include "model/hyperparameters.h"
#include "model/model_spec.h"

namespace inlay {

// The sizes that the tensors of a layer are made of.
enum class Width : uint8_t { kOne, kEmbedding, kHead, kQuery, kKey, kValue, kAttention, kFeedForward };

// A tensor "blk.<n>.<name>" and the slot it fills.
struct SlotTensor {
    LayerSlot slot;
    const char* name;
    Width n_cols;
    Width n_rows;
    bool required;
};

// Sizes, norm epsilon and the attention scale of one over the root of the head's size. Throws INLAY_E_FORMAT or
// INLAY_E_UNSUPPORTED naming the key.
ModelSpec read_decoder_shape(const GgufFile& file, const Hyperparameters& numbers);

// The rope of the keys "rope.*", with their scaling and the factors of the tensor rope_freqs, if there are any.
RopeSpec read_rope(const GgufFile& file, const ByteSource& source, const Hyperparameters& numbers,
                   const ModelSpec& spec, bool interleaved);

// Names the tensors outside and inside the layers. The output head is the embedding where it has no tensor of its own.
void name_tensors(const GgufFile& file, std::span<const SlotTensor> slots, ModelSpec& spec);

}  // namespace inlay
