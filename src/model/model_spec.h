// What a decoder-only transformer is made of, as data. An architecture file fills a ModelSpec from a model file's
// metadata; the decoder reads it and knows no architecture's name.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/gate_function.h"
#include "backend/rope_spec.h"

namespace inlay {

// The weights a layer can have. A slot that the model does not fill is left out of the computation.
enum class LayerSlot : uint8_t {
    kAttentionNorm,
    kQuery,
    kQueryBias,
    kQueryNorm,  // of each head, before rope
    kKey,
    kKeyBias,
    kKeyNorm,
    kValue,
    kValueBias,
    kAttentionOutput,
    kAttentionOutputBias,
    kPostAttentionNorm,  // of what attention adds to the residual stream
    kFeedForwardNorm,
    kGate,
    kGateBias,
    kUp,
    kUpBias,
    kDown,
    kDownBias,
    kPostFeedForwardNorm,
    kCount
};
inline constexpr size_t kLayerSlots = static_cast<size_t>(LayerSlot::kCount);

inline constexpr uint32_t kNoTensor = UINT32_MAX;

struct LayerSpec {
    uint32_t window = 0;                                             // positions a token sees, its own included; 0: all
    uint32_t rope = 0;                                               // which of ModelSpec::ropes
    std::array<uint32_t, kLayerSlots> tensors = filled_with_none();  // index into the file's tensors, or kNoTensor

    uint32_t tensor(LayerSlot slot) const { return tensors[static_cast<size_t>(slot)]; }

private:
    static constexpr std::array<uint32_t, kLayerSlots> filled_with_none() {
        std::array<uint32_t, kLayerSlots> none{};
        none.fill(kNoTensor);
        return none;
    }
};

struct ModelSpec {
    uint32_t n_vocabulary = 0;
    uint32_t n_embedding = 0;
    uint32_t n_heads = 0;
    uint32_t n_kv_heads = 0;
    uint32_t head_dim = 0;   // of queries and keys
    uint32_t value_dim = 0;  // of values
    uint32_t n_feed_forward = 0;
    uint32_t context_tokens = 0;

    float norm_epsilon = 0;  // root mean square norm
    float embedding_scale = 1.0f;
    float attention_scale = 1.0f;
    GateFunction gate = GateFunction::kSilu;

    std::vector<RopeSpec> ropes;
    std::vector<LayerSpec> layers;

    uint32_t embedding = kNoTensor;  // [n_vocabulary, n_embedding]
    uint32_t output_norm = kNoTensor;
    uint32_t output = kNoTensor;  // [n_vocabulary, n_embedding]; the embedding's index when they are tied
};

}  // namespace inlay
