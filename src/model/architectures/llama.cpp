// Llama: root mean square norms before attention and feed-forward, grouped-query attention over all positions, rope on
// interleaved pairs (the converter to GGUF permutes the rows of q and k), a gated feed-forward with SiLU.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder_shape.h"

namespace inlay {
namespace {

constexpr SlotTensor kSlotTensors[] = {
    {LayerSlot::kAttentionNorm, "attn_norm.weight", Width::kEmbedding, Width::kOne, true},
    {LayerSlot::kQuery, "attn_q.weight", Width::kEmbedding, Width::kQuery, true},
    {LayerSlot::kQueryBias, "attn_q.bias", Width::kQuery, Width::kOne, false},
    {LayerSlot::kKey, "attn_k.weight", Width::kEmbedding, Width::kKey, true},
    {LayerSlot::kKeyBias, "attn_k.bias", Width::kKey, Width::kOne, false},
    {LayerSlot::kValue, "attn_v.weight", Width::kEmbedding, Width::kValue, true},
    {LayerSlot::kValueBias, "attn_v.bias", Width::kValue, Width::kOne, false},
    {LayerSlot::kAttentionOutput, "attn_output.weight", Width::kAttention, Width::kEmbedding, true},
    {LayerSlot::kAttentionOutputBias, "attn_output.bias", Width::kEmbedding, Width::kOne, false},
    {LayerSlot::kFeedForwardNorm, "ffn_norm.weight", Width::kEmbedding, Width::kOne, true},
    {LayerSlot::kGate, "ffn_gate.weight", Width::kEmbedding, Width::kFeedForward, true},
    {LayerSlot::kGateBias, "ffn_gate.bias", Width::kFeedForward, Width::kOne, false},
    {LayerSlot::kUp, "ffn_up.weight", Width::kEmbedding, Width::kFeedForward, true},
    {LayerSlot::kUpBias, "ffn_up.bias", Width::kFeedForward, Width::kOne, false},
    {LayerSlot::kDown, "ffn_down.weight", Width::kFeedForward, Width::kEmbedding, true},
    {LayerSlot::kDownBias, "ffn_down.bias", Width::kEmbedding, Width::kOne, false},
};

}  // namespace

ModelSpec make_llama_spec(const GgufFile& file, const ByteSource& source) {
    const Hyperparameters numbers(file, "llama");
    ModelSpec spec = read_decoder_shape(file, numbers);
    spec.ropes.push_back(read_rope(file, source, numbers, spec, true));
    name_tensors(file, kSlotTensors, spec);
    return spec;
}

}  // namespace inlay
