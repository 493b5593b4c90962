#include "model/decoder.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace inlay {
namespace {

using Buffer = Backend::Buffer;

// Calls visit(index of a tensor in the file) for each that the spec names, in the order of use.
template <typename Visit>
void for_each_tensor(const ModelSpec& spec, const Visit& visit) {
    visit(spec.embedding);
    for (const LayerSpec& layer : spec.layers)
        for (uint32_t tensor : layer.tensors) visit(tensor);
    visit(spec.output_norm);
    visit(spec.output);
}

// Each tensor once: tied weights are named twice.
std::vector<uint32_t> used_tensors(const ModelSpec& spec) {
    std::vector<uint32_t> used;
    for_each_tensor(spec, [&](uint32_t tensor) {
        const bool tied = tensor == spec.embedding && !used.empty();
        if (tensor != kNoTensor && !tied) used.push_back(tensor);
    });
    return used;
}

}  // namespace

std::vector<const TensorInfo*> Decoder::tensors_of(const ModelSpec& spec, const GgufFile& file) {
    std::vector<const TensorInfo*> tensors;
    for (uint32_t index : used_tensors(spec)) tensors.push_back(&file.tensors()[index]);
    return tensors;
}

StepShape Decoder::step_shape(const ModelSpec& spec, uint32_t max_step_rows) {
    size_t n_pairs = 0;
    for (const RopeSpec& rope : spec.ropes) n_pairs += rope.inverse_frequency.size();
    return {.max_rows = max_step_rows,
            .n_embedding = spec.n_embedding,
            .query_width = spec.n_heads * spec.head_dim,
            .key_width = spec.n_kv_heads * spec.head_dim,
            .value_width = spec.n_kv_heads * spec.value_dim,
            .attention_width = spec.n_heads * spec.value_dim,
            .n_feed_forward = spec.n_feed_forward,
            .n_pairs = static_cast<uint32_t>(n_pairs),
            .n_heads = spec.n_heads,
            .n_kv_heads = spec.n_kv_heads,
            .value_dim = spec.value_dim,
            .max_positions = spec.context_tokens};
}

Decoder::Decoder(ModelSpec spec, const GgufFile& file, const ByteSource& source, Backend& backend,
                 uint32_t max_step_rows, const Backend::Loading& loading)
    : spec_(std::move(spec)), backend_(backend), layers_(spec_.layers.size()) {
    const std::vector<uint32_t> used = used_tensors(spec_);
    const std::vector<WeightId> loaded = backend_.load(source, tensors_of(spec_, file), loading);
    std::vector<WeightId> weight_of(file.tensors().size(), kNoWeight);
    for (size_t i = 0; i < used.size(); ++i) weight_of[used[i]] = loaded[i];
    const auto weight = [&](uint32_t tensor) { return tensor == kNoTensor ? kNoWeight : weight_of[tensor]; };

    for (size_t i = 0; i < layers_.size(); ++i)
        std::transform(spec_.layers[i].tensors.begin(), spec_.layers[i].tensors.end(), layers_[i].weights.begin(),
                       weight);
    embedding_ = weight(spec_.embedding);
    output_norm_ = weight(spec_.output_norm);
    output_ = weight(spec_.output);
    backend_.prepare_scratch(step_shape(spec_, max_step_rows));
}

void Decoder::begin(const StepRows& rows) {
    backend_.begin_positions(rows.sequences, spec_.ropes);
    backend_.embed(embedding_, rows.tokens, spec_.embedding_scale, backend_.activation(Buffer::kHidden));
}

void Decoder::compute_layer(const StepRows& rows, uint32_t layer) {
    attention_part(rows, layer);
    backend_.by_row_ranges(rows.tokens.size(), [&](RowOperations& operations, size_t first_row, size_t n_rows) {
        feed_forward_rows(operations, first_row, n_rows, layers_[layer]);
    });
}

// The residual stream is all that goes from layer to layer.
void Decoder::keep_rows(std::span<const uint32_t> kept, const StepRows& rows) {
    const Activation hidden = backend_.activation(Buffer::kHidden);
    backend_.gather_rows(hidden, kept, hidden);
    backend_.begin_positions(rows.sequences, spec_.ropes);
}

void Decoder::project_rows(RowOperations& operations, size_t first_row, size_t n_rows, const Layer& weights) {
    const auto rows_of = [&](Buffer buffer) { return backend_.activation(buffer).from_row(first_row); };
    const Activation query = rows_of(Buffer::kQuery);  // [n_rows, n_heads, head_dim]
    const Activation key = rows_of(Buffer::kKey);      // [n_rows, n_kv_heads, head_dim]
    const Activation value = rows_of(Buffer::kValue);  // [n_rows, n_kv_heads, value_dim]

    // Those that take longest come first, so that no thread is left with one.
    const LinearOutput projections[] = {
        {weights[LayerSlot::kKey], weights[LayerSlot::kKeyBias], key, false, InputPrecision::kDouble},
        {weights[LayerSlot::kValue], weights[LayerSlot::kValueBias], value, false, InputPrecision::kDouble},
        {weights[LayerSlot::kQuery], weights[LayerSlot::kQueryBias], query, false, InputPrecision::kSingle}};
    operations.linear(normed(rows_of(Buffer::kHidden), weights[LayerSlot::kAttentionNorm], rows_of(Buffer::kNormed)),
                      n_rows, projections);
    norm_heads(operations, query, n_rows, weights[LayerSlot::kQueryNorm]);
    norm_heads(operations, key, n_rows, weights[LayerSlot::kKeyNorm]);
}

void Decoder::attention_part(const StepRows& rows, uint32_t layer) {
    const Layer& weights = layers_[layer];
    const LayerSpec& spec = spec_.layers[layer];
    const Activation query = backend_.activation(Buffer::kQuery);
    backend_.by_row_ranges(rows.tokens.size(), [&](RowOperations& operations, size_t first_row, size_t n_rows) {
        project_rows(operations, first_row, n_rows, weights);
    });
    backend_.rope_and_store(rows.sequences, spec_.ropes, spec.rope, layer, query, backend_.activation(Buffer::kKey),
                            backend_.activation(Buffer::kValue));
    backend_.attention(rows.sequences, layer, spec.window, spec_.attention_scale, query,
                       backend_.activation(Buffer::kAttention));
}

void Decoder::feed_forward_rows(RowOperations& operations, size_t first_row, size_t n_rows, const Layer& weights) {
    const auto rows_of = [&](Buffer buffer) { return backend_.activation(buffer).from_row(first_row); };
    const Activation hidden = rows_of(Buffer::kHidden);       // [n_rows, n_embedding]
    const Activation room = rows_of(Buffer::kNormed);         // [n_rows, n_embedding]
    const Activation attended = rows_of(Buffer::kAttention);  // [n_rows, n_heads, value_dim]
    const Activation gate = rows_of(Buffer::kGate);           // [n_rows, n_feed_forward]
    const Activation up = rows_of(Buffer::kUp);               // [n_rows, n_feed_forward]

    add_to_hidden(operations, hidden, {.rows = attended}, n_rows,
                  {.weight = weights[LayerSlot::kAttentionOutput],
                   .bias = weights[LayerSlot::kAttentionOutputBias],
                   .norm = weights[LayerSlot::kPostAttentionNorm],
                   .added = room});
    const LinearOutput projections[] = {
        {weights[LayerSlot::kGate], weights[LayerSlot::kGateBias], gate, false, InputPrecision::kSingle},
        {weights[LayerSlot::kUp], weights[LayerSlot::kUpBias], up, false, InputPrecision::kSingle}};
    operations.linear(normed(hidden, weights[LayerSlot::kFeedForwardNorm], room), n_rows, projections);
    add_to_hidden(operations, hidden, {.rows = gate, .gated = up, .function = spec_.gate, .room = gate}, n_rows,
                  {.weight = weights[LayerSlot::kDown],
                   .bias = weights[LayerSlot::kDownBias],
                   .norm = weights[LayerSlot::kPostFeedForwardNorm],
                   .added = room});
}

// Heads lie behind each other in a row, so a row of heads is as many rows of one head.
void Decoder::norm_heads(RowOperations& operations, Activation heads, size_t n_rows, WeightId norm) {
    if (norm == kNoWeight) return;
    const size_t n_heads = heads.n_cols / spec_.head_dim;
    const Activation each{heads.data, spec_.head_dim};  // [n_rows * n_heads, head_dim]
    operations.rms_norm(each, n_rows * n_heads, norm, spec_.norm_epsilon, each);
}

LinearInput Decoder::normed(Activation rows, WeightId norm, Activation room) const {
    return {.rows = rows, .norm = norm, .norm_epsilon = spec_.norm_epsilon, .room = room};
}

void Decoder::add_to_hidden(RowOperations& operations, Activation hidden, const LinearInput& in, size_t n_rows,
                            const Contribution& what) {
    if (what.norm == kNoWeight) {
        const LinearOutput output{what.weight, what.bias, hidden, true, InputPrecision::kSingle};
        return operations.linear(in, n_rows, {&output, 1});
    }
    const LinearOutput output{what.weight, what.bias, what.added, false, InputPrecision::kSingle};
    operations.linear(in, n_rows, {&output, 1});
    operations.rms_norm(what.added, n_rows, what.norm, spec_.norm_epsilon, what.added);
    operations.add(what.added, n_rows, hidden);
}

void Decoder::finish(const StepRows& rows) {
    if (rows.logits_of.empty()) return;
    const Activation gathered = backend_.activation(Buffer::kGathered);  // [n_logits, n_embedding]
    backend_.gather_rows(backend_.activation(Buffer::kHidden), rows.logits_of, gathered);
    backend_.output(normed(gathered, output_norm_, gathered), output_, rows.logits);
}

}  // namespace inlay
