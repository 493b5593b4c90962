// Keys and values on their way into the pages: rotated, stored, and quantised in blocks that become full.
#include <algorithm>
#include <cstring>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/exact_pages.h"

namespace inlay {
namespace {

size_t first_written_block(const SequenceRows& rows) {
    return rows.first_position / kBlockTokens;
}
size_t n_written_blocks(const SequenceRows& rows) {
    return blocks_of(end_position(rows)) - first_written_block(rows);
}

// Whether the block that was not full before the step is full after it: what it holds must be read before the next one
// is written, perhaps over it.
bool leaves_open_block(const SequenceRows& rows) {
    return rows.layout->is_quantized() && rows.first_position % kBlockTokens != 0 &&
           end_position(rows) / kBlockTokens != first_written_block(rows);
}

}  // namespace

struct CpuBackend::StoreWork {
    const RopeSpec& rope;
    const float* angles;  // [n_step_rows, 2, n_pairs]
    uint32_t layer;
    size_t head_dim;
    size_t value_dim;
    Activation query;
    Activation key;
    Activation value;
};

void CpuBackend::rope_and_store(std::span<const SequenceRows> sequences, std::span<const RopeSpec> ropes,
                                size_t rope_index, uint32_t layer, Activation query, Activation key, Activation value) {
    const size_t head_dim = key.n_cols / shape_.n_kv_heads;
    size_t n_rows = 0;
    size_t n_blocks = 0;
    for (const SequenceRows& rows : sequences) {
        n_rows += rows.n_rows;
        n_blocks += n_written_blocks(rows);
        for (uint32_t head = 0; leaves_open_block(rows) && head < shape_.n_kv_heads; ++head)
            ExactPages::open_before(rows).read(layer, head, tiles_.tile(rows, layer, first_written_block(rows), head));
    }
    const float* angles = angles_;  // of this rope come after those of the ropes before
    for (const RopeSpec& before : ropes.first(rope_index)) angles += n_rows * 2 * before.inverse_frequency.size();
    const StoreWork work{ropes[rope_index], angles, layer, head_dim, shape_.value_dim, query, key, value};

    constexpr size_t kBlockGrain = 2;
    workers_.run_ranges(n_blocks, kBlockGrain, [&](size_t first, size_t end) {
        size_t n_before = 0;  // blocks of the sequences before
        for (const SequenceRows& rows : sequences) {
            const size_t n_here = n_written_blocks(rows);
            for (size_t i = std::max(first, n_before); i < std::min(end, n_before + n_here); ++i)
                store_block(work, rows, first_written_block(rows) + i - n_before);
            n_before += n_here;
        }
    });
}

// Rope, and for keys and values that are quantised so the rotation that spreads what stands out over the head.
void CpuBackend::rotate_rows(const StoreWork& work, const SequenceRows& rows, size_t first_row, size_t end_row) {
    const size_t n_pairs = work.rope.inverse_frequency.size();
    const size_t n_heads = work.query.n_cols / work.head_dim;
    const size_t n_kv_heads = shape_.n_kv_heads;
    for (size_t step_row = rows.first_row + first_row; step_row < rows.first_row + end_row; ++step_row) {
        const float* angles = work.angles + step_row * 2 * n_pairs;
        float* q = work.query.data + step_row * work.query.n_cols;
        float* k = work.key.data + step_row * work.key.n_cols;
        kernels_.rope_rotate(q, n_heads, work.head_dim, angles, n_pairs, work.rope.interleaved);
        kernels_.rope_rotate(k, n_kv_heads, work.head_dim, angles, n_pairs, work.rope.interleaved);
        if (kernels::rotates_keys(rows.layout->key_type)) {
            kernels_.rotate(q, n_heads, work.head_dim);
            kernels_.rotate(k, n_kv_heads, work.head_dim);
        }
        if (kernels::rotates_values(rows.layout->value_type))
            kernels_.rotate(work.value.data + step_row * work.value.n_cols, n_kv_heads, work.value_dim);
    }
}

// The rows that lie in one block.
void CpuBackend::store_block(const StoreWork& work, const SequenceRows& rows, size_t block) {
    const KvLayout& layout = *rows.layout;
    const size_t block_begin = block * kBlockTokens;
    const size_t first_row = block_begin > rows.first_position ? block_begin - rows.first_position : 0;
    const size_t end_row = std::min<size_t>(rows.n_rows, block_begin + kBlockTokens - rows.first_position);
    rotate_rows(work, rows, first_row, end_row);
    for (uint32_t head = 0; head < shape_.n_kv_heads; ++head) {
        std::byte* page = rows.pages[layout.group_of(work.layer)][block];
        std::byte* tile = layout.is_quantized() ? begin_tile(rows, work.layer, block, head)
                                                : page + layout.key_offset(work.layer, head);
        for (size_t row = first_row; row < end_row; ++row) {
            const size_t step_row = rows.first_row + row;
            const size_t slot = (rows.first_position + row) % kBlockTokens;
            kernels_.store_keys(work.key.data + step_row * work.key.n_cols + head * work.head_dim, work.head_dim,
                                kernels::exact_type(layout.key_type), slot, tile);
            kernels_.store_values(work.value.data + step_row * work.value.n_cols + head * work.value_dim,
                                  work.value_dim, kernels::exact_type(layout.value_type), slot,
                                  tile + layout.places[work.layer].exact_key_bytes);
        }
        if (layout.is_quantized()) end_tile(rows, work.layer, block, head, tile);
    }
}

// The tile of a block, with what was computed of it before the step.
std::byte* CpuBackend::begin_tile(const SequenceRows& rows, uint32_t layer, size_t block, uint32_t head) {
    const KvLayout& layout = *rows.layout;
    std::byte* tile = tiles_.tile(rows, layer, block, head);
    if (block != first_written_block(rows)) return tile;
    if (rows.first_position % kBlockTokens != 0 && !leaves_open_block(rows))
        ExactPages::open_before(rows).read(layer, head, tile);
    if (layout.has_first_tile(rows.first_position) && layout.keeps_first_exact(layer))
        ExactPages::first_block(rows).read(layer, head, tiles_.tile(rows, layer, 0, head));
    return tile;
}

// What is kept of the block after the step.
void CpuBackend::end_tile(const SequenceRows& rows, uint32_t layer, size_t block, uint32_t head,
                          const std::byte* tile) {
    if ((block + 1) * kBlockTokens > end_position(rows))
        ExactPages::open_after(rows).write(layer, head, tile);
    else
        close_block(rows, layer, block, head, tile);
}

void CpuBackend::close_block(const SequenceRows& rows, uint32_t layer, size_t block, uint32_t head,
                             const std::byte* tile) {
    const KvLayout& layout = *rows.layout;
    const KvLayout::Place& place = layout.places[layer];
    std::byte* page = rows.pages[layout.group_of(layer)][block];
    std::byte* keys = page + layout.key_offset(layer, head);
    std::byte* values = page + layout.value_offset(layer, head);
    if (kernels::is_quantized(layout.key_type))
        kernels_.close_keys(tile, shape_.key_width / shape_.n_kv_heads, layout.key_type, keys,
                            page + layout.key_parameters_offset(layer, head));
    else
        std::memcpy(keys, tile, place.key_bytes);
    if (kernels::is_quantized(layout.value_type))
        kernels_.close_values(tile + place.exact_key_bytes, shape_.value_dim, layout.value_type, values,
                              page + layout.value_parameters_offset(layer, head));
    else
        std::memcpy(values, tile + place.exact_key_bytes, place.value_bytes);
    if (block == 0 && layout.keeps_first_exact(layer)) ExactPages::first_block(rows).write(layer, head, tile);
}

}  // namespace inlay
