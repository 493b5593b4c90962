// Positions, the store into pages, and attention over them: how the work of a step is cut into tasks.
#include <algorithm>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/scratch_layout.h"

namespace inlay {

using kernels::attention_state_floats;
using kernels::kBlockTokens;
using kernels::kSplitPositions;

namespace {

size_t rows_of(std::span<const SequenceRows> sequences) {
    size_t n_rows = 0;
    for (const SequenceRows& rows : sequences) n_rows += rows.n_rows;
    return n_rows;
}

}  // namespace

struct CpuBackend::AttentionWork {
    std::span<const SequenceRows> sequences;
    uint32_t layer;
    uint32_t window;
    float scale;
    Activation query;
    Activation out;

    size_t group_heads;
    size_t head_dim;
    size_t value_dim;
    size_t max_splits;  // of any sequence

    kernels::AttentionTask task(const SequenceRows& rows, size_t first_row, size_t end_row, size_t kv_head) const {
        const KvLayout& layout = *rows.layout;
        const size_t step_row = rows.first_row + first_row;
        return {.queries = query.data + step_row * query.n_cols + kv_head * group_heads * head_dim,
                .query_row_stride = query.n_cols,
                .n_rows = end_row - first_row,
                .n_heads = group_heads,
                .head_dim = head_dim,
                .value_dim = value_dim,
                .first_position = rows.first_position + static_cast<uint32_t>(first_row),
                .window = window,
                .scale = scale,
                .key_type = layout.key_type,
                .value_type = layout.value_type,
                .pages = rows.pages[layout.group_of(layer)],
                .key_offset = layout.key_offset(layer, static_cast<uint32_t>(kv_head)),
                .value_offset = layout.value_offset(layer, static_cast<uint32_t>(kv_head))};
    }

    // The first position that the row sees.
    size_t first_seen(size_t position) const { return window == 0 || position < window ? 0 : position + 1 - window; }
};

// Calls work(rows of the sequence, row of the sequence, row of the step) for each row of a step.
template <typename Work>
void CpuBackend::run_rows(std::span<const SequenceRows> sequences, size_t grain, const Work& work) {
    workers_.run_ranges(rows_of(sequences), grain, [&](size_t first, size_t end) {
        for (const SequenceRows& rows : sequences) {
            const size_t from = std::max<size_t>(first, rows.first_row);
            const size_t to = std::min<size_t>(end, rows.first_row + rows.n_rows);
            for (size_t step_row = from; step_row < to; ++step_row) work(rows, step_row - rows.first_row, step_row);
        }
    });
}

void CpuBackend::begin_positions(std::span<const SequenceRows> sequences, std::span<const RopeSpec> ropes) {
    float* out = angles_;
    for (const RopeSpec& rope : ropes) {
        const size_t n_pairs = rope.inverse_frequency.size();
        run_rows(sequences, 16, [&](const SequenceRows& rows, size_t row, size_t step_row) {
            kernels_.rope_angles(rows.first_position + static_cast<uint32_t>(row), rope.inverse_frequency.data(),
                                 rope.magnitude, n_pairs, out + step_row * 2 * n_pairs);
        });
        out += rows_of(sequences) * 2 * n_pairs;
    }
}

void CpuBackend::rope_and_store(std::span<const SequenceRows> sequences, std::span<const RopeSpec> ropes,
                                size_t rope_index, uint32_t layer, Activation query, Activation key, Activation value) {
    const RopeSpec& rope = ropes[rope_index];
    const size_t n_pairs = rope.inverse_frequency.size();
    const size_t n_kv_heads = shape_.n_kv_heads;
    const size_t head_dim = key.n_cols / n_kv_heads;
    const size_t value_dim = value.n_cols / n_kv_heads;
    const float* angles = angles_;  // [n_step_rows, 2, n_pairs], after those of the ropes before
    for (const RopeSpec& before : ropes.first(rope_index))
        angles += rows_of(sequences) * 2 * before.inverse_frequency.size();

    run_rows(sequences, 4, [&](const SequenceRows& rows, size_t row, size_t step_row) {
        const KvLayout& layout = *rows.layout;
        const size_t position = rows.first_position + row;
        const float* row_angles = angles + step_row * 2 * n_pairs;
        float* k = key.data + step_row * key.n_cols;
        const float* v = value.data + step_row * value.n_cols;
        kernels_.rope_rotate(query.data + step_row * query.n_cols, query.n_cols / head_dim, head_dim, row_angles,
                             n_pairs, rope.interleaved);
        kernels_.rope_rotate(k, n_kv_heads, head_dim, row_angles, n_pairs, rope.interleaved);
        std::byte* page = rows.pages[layout.group_of(layer)][position / kBlockTokens];
        for (uint32_t head = 0; head < n_kv_heads; ++head) {
            kernels_.store_keys(k + head * head_dim, head_dim, layout.key_type, position % kBlockTokens,
                                page + layout.key_offset(layer, head));
            kernels_.store_values(v + head * value_dim, value_dim, layout.value_type, position % kBlockTokens,
                                  page + layout.value_offset(layer, head));
        }
    });
}

void CpuBackend::finish_rows(const AttentionWork& work, const float* states, size_t first_row, size_t end_row,
                             size_t kv_head) {
    const size_t row_states = work.group_heads * attention_state_floats(work.value_dim);
    for (size_t row = first_row; row < end_row; ++row)
        kernels_.finish_attention(states + (row - first_row) * row_states, work.group_heads, work.value_dim,
                                  work.out.data + row * work.out.n_cols + kv_head * work.group_heads * work.value_dim);
}

void CpuBackend::attend_whole(const AttentionWork& work, const SequenceRows& rows, size_t first_row, size_t end_row,
                              size_t kv_head, unsigned thread) {
    const size_t state_floats = attention_state_floats(work.value_dim);
    float* states = thread_states_ + thread * kAttentionRowsPerTask * work.group_heads * state_floats;
    const kernels::AttentionTask task = work.task(rows, first_row, end_row, kv_head);
    const size_t first_split = work.first_seen(rows.first_position + first_row) / kSplitPositions;
    const size_t end_split = splits_of(rows.first_position + end_row);
    kernels_.attend(task, first_split, end_split, true, states);
    finish_rows(work, states, rows.first_row + first_row, rows.first_row + end_row, kv_head);
}

void CpuBackend::attention(std::span<const SequenceRows> sequences, uint32_t layer, uint32_t window, float scale,
                           Activation query, Activation out) {
    const size_t n_kv_heads = shape_.n_kv_heads;
    AttentionWork work{.sequences = sequences,
                       .layer = layer,
                       .window = window,
                       .scale = scale,
                       .query = query,
                       .out = out,
                       .group_heads = shape_.n_heads / n_kv_heads,
                       .head_dim = query.n_cols / shape_.n_heads,
                       .value_dim = shape_.value_dim,
                       .max_splits = 0};
    const size_t n_rows = rows_of(sequences);
    size_t n_whole_tasks = 0;
    size_t n_positions = 0;
    for (const SequenceRows& rows : sequences) {
        n_whole_tasks += (rows.n_rows + kAttentionRowsPerTask - 1) / kAttentionRowsPerTask * n_kv_heads;
        n_positions = std::max<size_t>(n_positions, rows.first_position + rows.n_rows);
    }
    work.max_splits = splits_of(n_positions);
    const bool few_tasks = n_whole_tasks < 8 * workers_.n_threads() && workers_.n_threads() > 1;
    if (few_tasks && work.max_splits > 1 && n_rows <= kMaxSplitRows && n_positions <= shape_.max_positions)
        return attention_by_splits(work, n_rows);
    attention_by_rows(work, n_whole_tasks);
}

void CpuBackend::attention_by_rows(const AttentionWork& work, size_t n_tasks) {
    const size_t n_kv_heads = shape_.n_kv_heads;
    workers_.run(n_tasks, [&](size_t task, unsigned thread) {
        for (const SequenceRows& rows : work.sequences) {
            const size_t n_tiles = (rows.n_rows + kAttentionRowsPerTask - 1) / kAttentionRowsPerTask;
            if (task >= n_tiles * n_kv_heads) {
                task -= n_tiles * n_kv_heads;
                continue;
            }
            // Late rows see most: they go first, so that the last task of a step is a short one.
            const size_t first_row = (n_tiles - 1 - task / n_kv_heads) * kAttentionRowsPerTask;
            const size_t end_row = std::min<size_t>(rows.n_rows, first_row + kAttentionRowsPerTask);
            return attend_whole(work, rows, first_row, end_row, task % n_kv_heads, thread);
        }
    });
}

void CpuBackend::attention_by_splits(const AttentionWork& work, size_t n_rows) {
    const size_t n_kv_heads = shape_.n_kv_heads;
    const size_t group_floats = work.group_heads * attention_state_floats(work.value_dim);
    const auto states_of = [&](size_t step_row, size_t kv_head, size_t split) {
        return split_states_ + ((step_row * n_kv_heads + kv_head) * work.max_splits + split) * group_floats;
    };
    // The row of the step, of its sequence, and the splits it sees.
    struct Row {
        const SequenceRows* rows;
        size_t row;
        size_t first_split;
        size_t end_split;
    };
    const auto find_row = [&](size_t step_row) {
        for (const SequenceRows& rows : work.sequences)
            if (step_row >= rows.first_row && step_row < rows.first_row + rows.n_rows) {
                const size_t row = step_row - rows.first_row;
                const size_t position = rows.first_position + row;
                return Row{&rows, row, work.first_seen(position) / kSplitPositions, splits_of(position + 1)};
            }
        return Row{nullptr, 0, 0, 0};
    };
    workers_.run(n_rows * n_kv_heads * work.max_splits, [&](size_t task, unsigned) {
        const size_t split = task % work.max_splits;
        const size_t kv_head = task / work.max_splits % n_kv_heads;
        const size_t step_row = task / work.max_splits / n_kv_heads;
        const Row row = find_row(step_row);
        if (split < row.first_split || split >= row.end_split) return;
        kernels_.attend(work.task(*row.rows, row.row, row.row + 1, kv_head), split, split + 1, true,
                        states_of(step_row, kv_head, split));
    });
    workers_.run_ranges(n_rows * n_kv_heads, 4, [&](size_t first, size_t end) {
        for (size_t i = first; i < end; ++i) {
            const size_t step_row = i / n_kv_heads;
            const size_t kv_head = i % n_kv_heads;
            const Row row = find_row(step_row);
            float* states = states_of(step_row, kv_head, row.first_split);
            for (size_t split = row.first_split + 1; split < row.end_split; ++split)
                kernels_.merge_attention(states, states_of(step_row, kv_head, split), work.group_heads, work.value_dim);
            finish_rows(work, states, step_row, step_row + 1, kv_head);
        }
    });
}

}  // namespace inlay
