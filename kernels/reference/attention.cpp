// Paged attention as it is defined: one row and head after the other, online softmax over blocks of 16 tokens, splits
// of 512 positions merged in ascending order.
#include "kernels/reference/attention.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/reference/closed_block.h"
#include "kernels/reference/exact_tile.h"
#include "kernels/reference/exp.h"
#include "kernels/reference/rounding.h"
#include "kernels/reference/row_sums.h"

namespace inlay::kernels {

namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Positions first..end that one row sees.
struct Span {
    size_t first;
    size_t end;
};

Span seen_by(const AttentionTask& task, size_t row) {
    const size_t end = size_t{task.first_position} + row + 1;
    return {task.window != 0 && end > task.window ? end - task.window : 0, end};
}

// What a row has gathered of one split.
struct Softmax {
    float max = kMinusInfinity;
    float sum = 0.0f;
    std::vector<float> output;
};

// A query as integers, for quantised keys: about scale * integers.
struct IntegerQuery {
    std::vector<int32_t> integers;
    float scale = 0.0f;
};

IntegerQuery integer_query(const float* query, size_t head_dim) {
    using Q = QuantizedKv;
    IntegerQuery q;
    q.integers.assign(head_dim, 0);
    int32_t largest = 0;
    for (size_t d = 0; d < head_dim; ++d) largest = std::max(largest, magnitude_bits(query[d]));
    if (largest < Q::kSmallestQueryBits) return q;
    const float absmax = std::bit_cast<float>(largest);
    q.scale = absmax * (1.0f / Q::kLargestQuery);
    if (largest >= Q::kInfinityBits) return q;  // the scale carries it into every score
    const float inverse = Q::kLargestQuery / absmax;
    for (size_t d = 0; d < head_dim; ++d) q.integers[d] = round_to_int(query[d] * inverse);
    return q;
}

// One query and what is needed of it for blocks of either kind.
struct Query {
    const float* exact;
    IntegerQuery integer;
};

// Where one block of the task lies and of which types it is.
struct Block {
    KvType key_type;
    KvType value_type;
    const std::byte* keys;
    const std::byte* values;
    const std::byte* key_parameters;
    const std::byte* value_parameters;
};

Block find_block(const AttentionTask& task, size_t block) {
    const KvType key_type = exact_type(task.key_type);
    const KvType value_type = exact_type(task.value_type);
    if (task.own_keys != nullptr && block == task.first_position / kBlockTokens)
        return {key_type, value_type, task.own_keys, task.own_values, nullptr, nullptr};
    if (task.first_keys != nullptr && block == 0)
        return {key_type, value_type, task.first_keys, task.first_values, nullptr, nullptr};
    const std::byte* page = task.pages[block];
    return {task.key_type,
            task.value_type,
            page + task.key_offset,
            page + task.value_offset,
            page + task.key_parameters_offset,
            page + task.value_parameters_offset};
}

float exact_score(const AttentionTask& task, const Query& query, const Block& block, size_t token) {
    float total = 0.0f;
    for (size_t begin = 0; begin < task.head_dim; begin += 32) {
        const size_t end = std::min(begin + 32, task.head_dim);
        float part = 0.0f;
        for (size_t d = begin; d < end; ++d)
            part = std::fma(load_element(block.key_type, block.keys, d * kBlockTokens + token), query.exact[d], part);
        total = total + part;
    }
    return task.scale * total;
}

float quantized_score(const AttentionTask& task, const Query& query, const Block& block, size_t token) {
    float total = 0.0f;
    for (size_t begin = 0; begin < task.head_dim; begin += kKeyGroup) {
        const size_t end = std::min(begin + kKeyGroup, task.head_dim);
        int32_t dot = 0;  // at most 64 * 1023 * 32767 < 2^31
        for (size_t d = begin; d < end; ++d)
            dot += key_integer(block.key_type, block.keys, block.key_parameters, task.head_dim, d, token) *
                   query.integer.integers[d];
        const float scale = key_scale(block.key_type, block.key_parameters, task.head_dim, begin, token);
        total = std::fma(static_cast<float>(dot), scale, total);
    }
    return (task.scale * query.integer.scale) * total;
}

void add_exact_values(const AttentionTask& task, const Block& block, const VirtualLanes& weights, size_t first,
                      size_t end, float rescale, std::vector<float>& output) {
    for (size_t i = 0; i < task.value_dim; ++i) {
        float sum = output[i] * rescale;
        for (size_t t = first; t < end; ++t)
            sum = std::fma(weights[t], load_element(block.value_type, block.values, t * task.value_dim + i), sum);
        output[i] = sum;
    }
}

// Weights become integers in units of the block's largest.
void add_quantized_values(const AttentionTask& task, const Block& block, const VirtualLanes& weights, float rescale,
                          std::vector<float>& output) {
    using Q = QuantizedKv;
    VirtualLanes scaled{};
    for (size_t t = 0; t < kBlockTokens; ++t)
        if (weights[t] > 0.0f) scaled[t] = weights[t] * value_scale(block.value_parameters, t);
    int32_t largest_bits = 0;
    for (const float x : scaled) largest_bits = std::max(largest_bits, std::bit_cast<int32_t>(x));
    const auto largest = std::bit_cast<float>(largest_bits);
    float factor = 0.0f;
    std::array<int32_t, kBlockTokens> integers{};
    if (!(largest <= Q::kSmallestWeight)) {  // not a number: carried into the outputs
        factor = largest * (1.0f / Q::kLargestWeight);
        const float inverse = Q::kLargestWeight / largest;
        for (size_t t = 0; t < kBlockTokens; ++t)
            integers[t] = std::max(round_to_int(scaled[t] * inverse), INT32_C(-32768));
    }
    for (size_t i = 0; i < task.value_dim; ++i) {
        int32_t sum = 0;
        for (size_t t = 0; t < kBlockTokens; ++t)
            sum += integers[t] * value_integer(block.value_type, block.values, task.value_dim, i, t);
        output[i] = std::fma(static_cast<float>(sum), factor, output[i] * rescale);
    }
}

// Tokens first..end of one block, at least one.
void visit_block(const AttentionTask& task, const Query& query, const Block& block, size_t first, size_t end,
                 Softmax& state) {
    VirtualLanes scores;
    scores.fill(kMinusInfinity);
    const auto score = is_quantized(block.key_type) ? quantized_score : exact_score;
    for (size_t t = first; t < end; ++t) scores[t] = score(task, query, block, t);

    const float max = larger(state.max, fold_max(scores));
    const float rescale = reference_exp(state.max - max);
    VirtualLanes weights{};
    for (size_t t = first; t < end; ++t) weights[t] = reference_exp(scores[t] - max);
    state.sum = std::fma(state.sum, rescale, fold_sum(weights));
    state.max = max;
    if (is_quantized(block.value_type)) {
        add_quantized_values(task, block, weights, rescale, state.output);
    } else {
        add_exact_values(task, block, weights, first, end, rescale, state.output);
    }
}

// The positions span.first..span.end, all of one split.
Softmax attend_span(const AttentionTask& task, const Query& query, Span span) {
    Softmax state;
    state.output.assign(task.value_dim, 0.0f);
    for (size_t block = span.first / kBlockTokens; block * kBlockTokens < span.end; ++block) {
        const size_t start = block * kBlockTokens;
        const size_t first = span.first > start ? span.first - start : 0;
        const size_t end = span.end - start < kBlockTokens ? span.end - start : kBlockTokens;
        visit_block(task, query, find_block(task, block), first, end, state);
    }
    return state;
}

// A state that has seen no token has sum 0, and no other has: the largest weight is 1.
void merge_state(float* state, float later_max, float later_sum, const float* later_output, size_t value_dim) {
    if (later_sum == 0.0f) return;
    if (state[1] == 0.0f) {
        state[0] = later_max;
        state[1] = later_sum;
        for (size_t i = 0; i < value_dim; ++i) state[2 + i] = later_output[i];
        return;
    }
    const float max = larger(state[0], later_max);
    const float rescale = reference_exp(state[0] - max);
    const float later_rescale = reference_exp(later_max - max);
    state[0] = max;
    state[1] = std::fma(state[1], rescale, later_sum * later_rescale);
    for (size_t i = 0; i < value_dim; ++i) {
        state[2 + i] = std::fma(state[2 + i], rescale, later_output[i] * later_rescale);
    }
}

}  // namespace

void reference_store_keys(const float* k, size_t head_dim, KvType type, size_t slot, std::byte* keys) {
    for (size_t d = 0; d < head_dim; ++d) store_element(type, k[d], keys, d * kBlockTokens + slot);
}

void reference_store_values(const float* v, size_t value_dim, KvType type, size_t slot, std::byte* values) {
    for (size_t i = 0; i < value_dim; ++i) store_element(type, v[i], values, slot * value_dim + i);
}

void reference_attend(const AttentionTask& task, size_t first_split, size_t end_split, bool fresh, float* states) {
    const size_t state_floats = attention_state_floats(task.value_dim);
    for (size_t row = 0; row < task.n_rows; ++row) {
        const Span seen = seen_by(task, row);
        for (size_t head = 0; head < task.n_heads; ++head) {
            const float* exact = task.queries + row * task.query_row_stride + head * task.head_dim;
            const Query query = {exact, integer_query(exact, task.head_dim)};
            float* state = states + (row * task.n_heads + head) * state_floats;
            if (fresh) {
                state[0] = kMinusInfinity;
                for (size_t i = 1; i < state_floats; ++i) state[i] = 0.0f;
            }
            for (size_t split = first_split; split < end_split; ++split) {
                const size_t start = split * kSplitPositions;
                const Span span = {seen.first > start ? seen.first : start,
                                   seen.end < start + kSplitPositions ? seen.end : start + kSplitPositions};
                if (span.first >= span.end) continue;
                const Softmax part = attend_span(task, query, span);
                merge_state(state, part.max, part.sum, part.output.data(), task.value_dim);
            }
        }
    }
}

void reference_merge_attention(float* states, const float* later, size_t n_states, size_t value_dim) {
    const size_t state_floats = attention_state_floats(value_dim);
    for (size_t i = 0; i < n_states; ++i) {
        const float* state = later + i * state_floats;
        merge_state(states + i * state_floats, state[0], state[1], state + 2, value_dim);
    }
}

void reference_finish_attention(const float* states, size_t n_states, size_t value_dim, float* out) {
    const size_t state_floats = attention_state_floats(value_dim);
    for (size_t i = 0; i < n_states; ++i) {
        const float* state = states + i * state_floats;
        for (size_t j = 0; j < value_dim; ++j) out[i * value_dim + j] = state[2 + j] / state[1];
    }
}

}  // namespace inlay::kernels
