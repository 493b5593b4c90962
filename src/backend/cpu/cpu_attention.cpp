// Positions and attention: how the work of a step is cut into tasks.
#include <algorithm>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/exact_pages.h"
#include "backend/cpu/scratch_layout.h"

namespace inlay {

using kernels::attention_state_floats;
using kernels::kSplitPositions;

namespace {

// The rows that lie in one block make a tile: with quantised blocks they see the same ones.
size_t n_row_tiles(const SequenceRows& rows) {
    return blocks_of(end_position(rows)) - rows.first_position / kBlockTokens;
}
size_t end_of_row_tile(const SequenceRows& rows, size_t tile) {
    const size_t end = (rows.first_position / kBlockTokens + tile + 1) * kBlockTokens;
    return std::min<size_t>(rows.n_rows, end - rows.first_position);
}

size_t rows_of(std::span<const SequenceRows> sequences) {
    size_t n_rows = 0;
    for (const SequenceRows& rows : sequences) n_rows += rows.n_rows;
    return n_rows;
}

}  // namespace

struct CpuBackend::AttentionWork {
    std::span<const SequenceRows> sequences;
    const StepTiles& tiles;
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
        kernels::AttentionTask task{.queries = query.data + step_row * query.n_cols + kv_head * group_heads * head_dim,
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
        if (layout.is_quantized()) add_tiles(rows, kv_head, task);
        return task;
    }

    void add_tiles(const SequenceRows& rows, size_t kv_head, kernels::AttentionTask& task) const {
        const KvLayout& layout = *rows.layout;
        const size_t block = task.first_position / kBlockTokens;
        const size_t exact_key_bytes = layout.places[layer].exact_key_bytes;
        task.key_parameters_offset = layout.key_parameters_offset(layer, kv_head);
        task.value_parameters_offset = layout.value_parameters_offset(layer, kv_head);
        task.own_keys = tiles.tile(rows, layer, block, kv_head);
        task.own_values = task.own_keys + exact_key_bytes;
        if (block == 0 || !layout.keeps_first_exact(layer)) return;
        task.first_keys = tiles.tile(rows, layer, 0, kv_head);
        task.first_values = task.first_keys + exact_key_bytes;
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
    tiles_.begin(sequences);
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

// first_row and end_row are rows of the step, all of one sequence.
void CpuBackend::finish_rows(const AttentionWork& work, const float* states, const SequenceRows& rows, size_t first_row,
                             size_t end_row, size_t kv_head) {
    const size_t row_states = work.group_heads * attention_state_floats(work.value_dim);
    for (size_t row = first_row; row < end_row; ++row) {
        float* out = work.out.data + row * work.out.n_cols + kv_head * work.group_heads * work.value_dim;
        kernels_.finish_attention(states + (row - first_row) * row_states, work.group_heads, work.value_dim, out);
        if (kernels::rotates_values(rows.layout->value_type)) kernels_.rotate(out, work.group_heads, work.value_dim);
    }
}

void CpuBackend::attend_whole(const AttentionWork& work, const SequenceRows& rows, size_t first_row, size_t end_row,
                              size_t kv_head, unsigned thread) {
    const size_t state_floats = attention_state_floats(work.value_dim);
    float* states = thread_states_ + thread * kAttentionRowsPerTask * work.group_heads * state_floats;
    const kernels::AttentionTask task = work.task(rows, first_row, end_row, kv_head);
    const size_t first_split = work.first_seen(rows.first_position + first_row) / kSplitPositions;
    const size_t end_split = splits_of(rows.first_position + end_row);
    kernels_.attend(task, first_split, end_split, true, states);
    finish_rows(work, states, rows, rows.first_row + first_row, rows.first_row + end_row, kv_head);
}

void CpuBackend::attention(std::span<const SequenceRows> sequences, uint32_t layer, uint32_t window, float scale,
                           Activation query, Activation out) {
    const size_t n_kv_heads = shape_.n_kv_heads;
    AttentionWork work{.sequences = sequences,
                       .tiles = tiles_,
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
        n_whole_tasks += n_row_tiles(rows) * n_kv_heads;
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
            const size_t n_tiles = n_row_tiles(rows);
            if (task >= n_tiles * n_kv_heads) {
                task -= n_tiles * n_kv_heads;
                continue;
            }
            // Late rows see most: they go first, so that the last task of a step is a short one.
            const size_t tile = n_tiles - 1 - task / n_kv_heads;
            const size_t first_row = tile == 0 ? 0 : end_of_row_tile(rows, tile - 1);
            return attend_whole(work, rows, first_row, end_of_row_tile(rows, tile), task % n_kv_heads, thread);
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
        const SequenceRows& rows;
        size_t row;
        size_t first_split;
        size_t end_split;
    };
    const auto find_row = [&](size_t step_row) {
        size_t sequence = 0;
        while (step_row >= work.sequences[sequence].first_row + work.sequences[sequence].n_rows) ++sequence;
        const SequenceRows& rows = work.sequences[sequence];
        const size_t row = step_row - rows.first_row;
        const size_t position = rows.first_position + row;
        return Row{rows, row, work.first_seen(position) / kSplitPositions, splits_of(position + 1)};
    };
    workers_.run(n_rows * n_kv_heads * work.max_splits, [&](size_t task, unsigned) {
        const size_t split = task % work.max_splits;
        const size_t kv_head = task / work.max_splits % n_kv_heads;
        const size_t step_row = task / work.max_splits / n_kv_heads;
        const Row row = find_row(step_row);
        if (split < row.first_split || split >= row.end_split) return;
        kernels_.attend(work.task(row.rows, row.row, row.row + 1, kv_head), split, split + 1, true,
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
            finish_rows(work, states, row.rows, step_row, step_row + 1, kv_head);
        }
    });
}

}  // namespace inlay
