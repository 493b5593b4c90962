// Gemma 3: an embedding scaled by the root of its width, norms on both sides of attention and feed-forward and on each
// query and key head, a window on five of six layers with a rope base of their own, a gated feed-forward with GELU, a
// tied output head. The converter to GGUF has added one to all norm weights.
#include <cmath>

#include "model/architectures/architectures.h"
#include "model/architectures/decoder_shape.h"
#include "model/rope_scaling.h"

namespace inlay {
namespace {

constexpr SlotTensor kSlotTensors[] = {
    {LayerSlot::kAttentionNorm, "attn_norm.weight", Width::kEmbedding, Width::kOne, true},
    {LayerSlot::kQuery, "attn_q.weight", Width::kEmbedding, Width::kQuery, true},
    {LayerSlot::kQueryNorm, "attn_q_norm.weight", Width::kHead, Width::kOne, true},
    {LayerSlot::kKey, "attn_k.weight", Width::kEmbedding, Width::kKey, true},
    {LayerSlot::kKeyNorm, "attn_k_norm.weight", Width::kHead, Width::kOne, true},
    {LayerSlot::kValue, "attn_v.weight", Width::kEmbedding, Width::kValue, true},
    {LayerSlot::kAttentionOutput, "attn_output.weight", Width::kAttention, Width::kEmbedding, true},
    {LayerSlot::kPostAttentionNorm, "post_attention_norm.weight", Width::kEmbedding, Width::kOne, true},
    {LayerSlot::kFeedForwardNorm, "ffn_norm.weight", Width::kEmbedding, Width::kOne, true},
    {LayerSlot::kGate, "ffn_gate.weight", Width::kEmbedding, Width::kFeedForward, true},
    {LayerSlot::kUp, "ffn_up.weight", Width::kEmbedding, Width::kFeedForward, true},
    {LayerSlot::kDown, "ffn_down.weight", Width::kFeedForward, Width::kEmbedding, true},
    {LayerSlot::kPostFeedForwardNorm, "post_ffw_norm.weight", Width::kEmbedding, Width::kOne, true},
};

constexpr size_t kWindowPeriod = 6;        // every sixth layer sees all positions
constexpr double kWindowRopeBase = 10000;  // where the file does not say it
constexpr size_t kLayersOf27B = 62;        // the one size whose attention scale is that of its width, not of its heads

enum Rope : uint32_t { kAllPositions, kWindow };

}  // namespace

ModelSpec make_gemma3_spec(const GgufFile& file, const ByteSource& source) {
    const Hyperparameters numbers(file, "gemma3");
    ModelSpec spec = read_decoder_shape(file, numbers);
    spec.embedding_scale = std::sqrt(static_cast<float>(spec.n_embedding));
    spec.gate = GateFunction::kGelu;
    if (spec.layers.size() == kLayersOf27B) {
        const uint32_t width_of_head = spec.n_embedding / spec.n_heads;
        spec.attention_scale = 1.0f / std::sqrt(static_cast<float>(width_of_head));
    }

    spec.ropes.push_back(read_rope(file, source, numbers, spec, false));
    const uint32_t n_dims = 2 * static_cast<uint32_t>(spec.ropes[kAllPositions].inverse_frequency.size());
    spec.ropes.push_back(
        plain_rope(numbers.optional_number("rope.freq_base_swa", 1, 1e12).value_or(kWindowRopeBase), n_dims));

    const uint32_t window = numbers.optional_count("attention.sliding_window", 0, 1u << 30).value_or(0);
    for (size_t i = 0; i < spec.layers.size(); ++i) {
        if (window == 0 || i % kWindowPeriod == kWindowPeriod - 1) continue;
        spec.layers[i].window = window;
        spec.layers[i].rope = kWindow;
    }
    name_tensors(file, kSlotTensors, spec);
    return spec;
}

}  // namespace inlay
