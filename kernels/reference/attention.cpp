// Paged attention as it is defined: one row and head after the other, online softmax over blocks of 16 tokens, splits
// of 512 positions merged in ascending order.
#include "kernels/reference/attention.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/reference/exp.h"
#include "kernels/reference/half.h"
#include "kernels/reference/row_sums.h"

namespace inlay::kernels {

namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// An f32 or f16 element of a plane that may lie at any address.
float load_element(KvType type, const std::byte* plane, size_t index) {
    if (type == KvType::kF32) {
        float value;
        std::memcpy(&value, plane + index * sizeof value, sizeof value);
        return value;
    }
    uint16_t half;
    std::memcpy(&half, plane + index * sizeof half, sizeof half);
    return half_to_float(half);
}

void store_element(KvType type, float value, std::byte* plane, size_t index) {
    if (type == KvType::kF32) {
        std::memcpy(plane + index * sizeof value, &value, sizeof value);
        return;
    }
    const uint16_t half = float_to_half(value);
    std::memcpy(plane + index * sizeof half, &half, sizeof half);
}

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

float key_dot(const AttentionTask& task, const float* query, const std::byte* keys, size_t token) {
    float total = 0.0f;
    for (size_t begin = 0; begin < task.head_dim; begin += 32) {
        const size_t end = begin + 32 < task.head_dim ? begin + 32 : task.head_dim;
        float part = 0.0f;
        for (size_t d = begin; d < end; ++d) {
            part = std::fma(load_element(task.key_type, keys, d * kBlockTokens + token), query[d], part);
        }
        total = total + part;
    }
    return total;
}

// Tokens first..end of one block, at least one.
void visit_block(const AttentionTask& task, const float* query, const std::byte* page, size_t first, size_t end,
                 Softmax& state) {
    VirtualLanes scores;
    scores.fill(kMinusInfinity);
    for (size_t t = first; t < end; ++t) scores[t] = task.scale * key_dot(task, query, page + task.key_offset, t);

    const float max = larger(state.max, fold_max(scores));
    const float rescale = reference_exp(state.max - max);
    VirtualLanes weights{};
    for (size_t t = first; t < end; ++t) weights[t] = reference_exp(scores[t] - max);
    state.sum = std::fma(state.sum, rescale, fold_sum(weights));
    state.max = max;
    for (size_t i = 0; i < task.value_dim; ++i) {
        float sum = state.output[i] * rescale;
        for (size_t t = first; t < end; ++t) {
            const float value = load_element(task.value_type, page + task.value_offset, t * task.value_dim + i);
            sum = std::fma(weights[t], value, sum);
        }
        state.output[i] = sum;
    }
}

// The positions span.first..span.end, all of one split.
Softmax attend_span(const AttentionTask& task, const float* query, Span span) {
    Softmax state;
    state.output.assign(task.value_dim, 0.0f);
    for (size_t block = span.first / kBlockTokens; block * kBlockTokens < span.end; ++block) {
        const size_t start = block * kBlockTokens;
        const size_t first = span.first > start ? span.first - start : 0;
        const size_t end = span.end - start < kBlockTokens ? span.end - start : kBlockTokens;
        visit_block(task, query, task.pages[block], first, end, state);
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
            const float* query = task.queries + row * task.query_row_stride + head * task.head_dim;
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
