#include "model/architectures/decoder_shape.h"

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "kernels/kernels.h"
#include "model/rope_scaling.h"

namespace inlay {
namespace {

constexpr uint32_t kMaxWidth = 1u << 20;

uint64_t width(const ModelSpec& spec, Width which) {
    switch (which) {
        case Width::kOne:
            return 1;
        case Width::kEmbedding:
            return spec.n_embedding;
        case Width::kHead:
            return spec.head_dim;
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

}  // namespace

ModelSpec read_decoder_shape(const GgufFile& file, const Hyperparameters& numbers) {
    ModelSpec spec;
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
    return spec;
}

RopeSpec read_rope(const GgufFile& file, const ByteSource& source, const Hyperparameters& numbers,
                   const ModelSpec& spec, bool interleaved) {
    const uint32_t n_dims =
        numbers.optional_count("rope.dimension_count", 2, spec.head_dim).value_or(spec.head_dim) & ~1u;
    const double base = numbers.optional_number("rope.freq_base", 1, 1e12).value_or(10000.0);
    RopeSpec rope = plain_rope(base, n_dims);
    rope.interleaved = interleaved;
    apply_scaling(numbers, base, spec.context_tokens, rope);
    if (const std::vector<float> factors = read_rope_factors(file, source, n_dims / 2); !factors.empty())
        divide_by_factors(rope, factors);
    return rope;
}

void name_tensors(const GgufFile& file, std::span<const SlotTensor> slots, ModelSpec& spec) {
    const TensorNames names(file);
    spec.embedding = names.required("token_embd.weight", spec.n_embedding, spec.n_vocabulary);
    spec.output_norm = names.required("output_norm.weight", spec.n_embedding, 1);
    spec.output = names.optional("output.weight", spec.n_embedding, spec.n_vocabulary);
    if (spec.output == kNoTensor) spec.output = spec.embedding;
    for (size_t i = 0; i < spec.layers.size(); ++i) {
        const std::string prefix = "blk." + std::to_string(i) + ".";
        for (const SlotTensor& tensor : slots) {
            const uint64_t n_cols = width(spec, tensor.n_cols);
            const uint64_t n_rows = width(spec, tensor.n_rows);
            spec.layers[i].tensors[static_cast<size_t>(tensor.slot)] =
                tensor.required ? names.required(prefix + tensor.name, n_cols, n_rows)
                                : names.optional(prefix + tensor.name, n_cols, n_rows);
        }
    }
}

}  // namespace inlay
