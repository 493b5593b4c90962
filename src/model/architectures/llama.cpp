// Llama: root mean square norms before attention and feed-forward, grouped-query attention over all positions, rope on
// interleaved pairs (the converter to GGUF permutes the rows of q and k), a gated feed-forward with SiLU.
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "kernels/kernels.h"
#include "model/architectures/architectures.h"
#include "model/hyperparameters.h"
#include "model/rope_scaling.h"

namespace inlay {
namespace {

constexpr uint32_t kMaxWidth = 1u << 20;

// Which tensor of "blk.<n>." fills which slot, and the sizes it must have.
enum class Width : uint8_t { kOne, kEmbedding, kQuery, kKey, kValue, kAttention, kFeedForward };
struct SlotTensor {
    LayerSlot slot;
    const char* name;
    Width n_cols;
    Width n_rows;
    bool required;
};
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

uint64_t width(const ModelSpec& spec, Width which) {
    switch (which) {
        case Width::kOne:
            return 1;
        case Width::kEmbedding:
            return spec.n_embedding;
        case Width::kQuery:
            return uint64_t{spec.n_heads} * spec.head_dim;
        case Width::kKey:
            return uint64_t{spec.n_kv_heads} * spec.head_dim;
        case Width::kValue:
            return uint64_t{spec.n_kv_heads} * spec.value_dim;
        case Width::kAttention:
            return uint64_t{spec.n_heads} * spec.value_dim;
        case Width::kFeedForward:
            return spec.n_feed_forward;
    }
    return 0;
}

void check_supported(const Hyperparameters& numbers, const ModelSpec& spec) {
    if (spec.n_heads % spec.n_kv_heads != 0)
        throw Error(INLAY_E_FORMAT, "key '" + numbers.key("attention.head_count") + "' is not a multiple of '" +
                                        numbers.key("attention.head_count_kv") + "'");
    for (const uint32_t dim : {spec.head_dim, spec.value_dim})
        if (dim % 8 != 0 || dim > kernels::kMaxHeadDim)
            throw Error(INLAY_E_UNSUPPORTED, "heads of " + std::to_string(dim) +
                                                 " channels: only multiples of 8 up to " +
                                                 std::to_string(kernels::kMaxHeadDim) + " are supported");
    if (numbers.optional_count("expert_count", 0, kMaxWidth).value_or(0) != 0)
        throw Error(INLAY_E_UNSUPPORTED, "key '" + numbers.key("expert_count") + "': experts are not supported");
}

void read_shape(const GgufFile& file, const Hyperparameters& numbers, ModelSpec& spec) {
    spec.architecture = "llama";
    spec.n_embedding = numbers.count("embedding_length", 1, kMaxWidth);
    spec.n_heads = numbers.count("attention.head_count", 1, 65536);
    spec.n_kv_heads = numbers.optional_count("attention.head_count_kv", 1, 65536).value_or(spec.n_heads);
    spec.head_dim = numbers.optional_count("attention.key_length", 1, 65536).value_or(spec.n_embedding / spec.n_heads);
    spec.value_dim = numbers.optional_count("attention.value_length", 1, 65536).value_or(spec.head_dim);
    if (spec.head_dim < 8)
        throw Error(INLAY_E_FORMAT, "key '" + numbers.key("attention.head_count") + "' leaves no width for a head");
    spec.n_feed_forward = numbers.count("feed_forward_length", 1, kMaxWidth);
    spec.context_tokens = numbers.count("context_length", 1, 1u << 30);
    spec.norm_epsilon = static_cast<float>(numbers.number("attention.layer_norm_rms_epsilon", 0, 1));
    spec.attention_scale = 1.0f / std::sqrt(static_cast<float>(spec.head_dim));
    spec.layers.resize(numbers.count("block_count", 1, 4096));

    const TensorInfo* embedding = file.find_tensor("token_embd.weight");
    if (!embedding) throw Error(INLAY_E_FORMAT, "tensor 'token_embd.weight' is missing");
    if (embedding->dims[1] > INT32_MAX) throw Error(INLAY_E_FORMAT, "tensor 'token_embd.weight' has too many rows");
    spec.n_vocabulary = static_cast<uint32_t>(embedding->dims[1]);
    check_supported(numbers, spec);
}

std::vector<float> read_rope_factors(const GgufFile& file, const ByteSource& source, size_t n_pairs) {
    const TensorInfo* tensor = file.find_tensor("rope_freqs.weight");
    if (!tensor) return {};
    if (tensor->type != TensorType::kF32 || tensor->n_dims != 1 || tensor->dims[0] != n_pairs)
        throw Error(INLAY_E_FORMAT,
                    "tensor 'rope_freqs.weight' is not a vector of " + std::to_string(n_pairs) + " values of type F32");
    std::vector<float> factors(n_pairs);
    source.read_at(tensor->offset, factors.data(), tensor->bytes);
    for (float factor : factors)
        if (!(factor > 0)) throw Error(INLAY_E_FORMAT, "tensor 'rope_freqs.weight' has a value that is not above 0");
    return factors;
}

void apply_scaling(const Hyperparameters& numbers, double base, uint32_t context_tokens, RopeSpec& rope) {
    const std::optional<std::string_view> type = numbers.string("rope.scaling.type");
    const std::optional<double> named_factor = numbers.optional_number("rope.scaling.factor", 0, 1e6);
    const double factor =
        named_factor ? *named_factor : numbers.optional_number("rope.scale_linear", 0, 1e6).value_or(1.0);
    if (type == "none") return;
    if (!type || type == "linear") return scale_linear(rope, factor);
    if (type != "yarn")
        throw Error(INLAY_E_UNSUPPORTED,
                    "key '" + numbers.key("rope.scaling.type") + "': '" + printable(*type, 64) + "' is not supported");
    YarnScaling yarn;
    yarn.factor = factor;
    yarn.original_context =
        numbers.optional_count("rope.scaling.original_context_length", 1, 1u << 30).value_or(context_tokens);
    yarn.extrapolation = numbers.optional_number("rope.scaling.yarn_ext_factor", -1, 1).value_or(1.0);
    if (yarn.extrapolation < 0) yarn.extrapolation = 1;  // a negative value in a file means "not set"
    yarn.attention_factor = numbers.optional_number("rope.scaling.attn_factor", 0, 1e6).value_or(1.0);
    yarn.beta_fast = numbers.optional_number("rope.scaling.yarn_beta_fast", 0, 1e6).value_or(32.0);
    yarn.beta_slow = numbers.optional_number("rope.scaling.yarn_beta_slow", 0, 1e6).value_or(1.0);
    scale_yarn(rope, base, yarn);
}

RopeSpec read_rope(const GgufFile& file, const ByteSource& source, const Hyperparameters& numbers,
                   const ModelSpec& spec) {
    const uint32_t n_dims =
        numbers.optional_count("rope.dimension_count", 2, spec.head_dim).value_or(spec.head_dim) & ~1u;
    const double base = numbers.optional_number("rope.freq_base", 1, 1e12).value_or(10000.0);
    RopeSpec rope = plain_rope(base, n_dims);
    rope.interleaved = true;
    apply_scaling(numbers, base, spec.context_tokens, rope);
    if (const std::vector<float> factors = read_rope_factors(file, source, n_dims / 2); !factors.empty())
        divide_by_factors(rope, factors);
    return rope;
}

void name_tensors(const GgufFile& file, ModelSpec& spec) {
    const TensorNames names(file);
    spec.embedding = names.required("token_embd.weight", spec.n_embedding, spec.n_vocabulary);
    spec.output_norm = names.required("output_norm.weight", spec.n_embedding, 1);
    spec.output = names.optional("output.weight", spec.n_embedding, spec.n_vocabulary);
    if (spec.output == kNoTensor) spec.output = spec.embedding;
    for (size_t i = 0; i < spec.layers.size(); ++i) {
        const std::string prefix = "blk." + std::to_string(i) + ".";
        for (const SlotTensor& tensor : kSlotTensors) {
            const uint64_t n_cols = width(spec, tensor.n_cols);
            const uint64_t n_rows = width(spec, tensor.n_rows);
            spec.layers[i].tensors[static_cast<size_t>(tensor.slot)] =
                tensor.required ? names.required(prefix + tensor.name, n_cols, n_rows)
                                : names.optional(prefix + tensor.name, n_cols, n_rows);
        }
    }
}

}  // namespace

ModelSpec make_llama_spec(const GgufFile& file, const ByteSource& source) {
    const Hyperparameters numbers(file, "llama");
    ModelSpec spec;
    read_shape(file, numbers, spec);
    spec.ropes.push_back(read_rope(file, source, numbers, spec));
    name_tensors(file, spec);
    return spec;
}

}  // namespace inlay
