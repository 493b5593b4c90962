// Paged attention over tiles of (row, head) pairs; the definition is reference/attention.cpp.
namespace inlay::kernels::INLAY_ISA {

constexpr size_t kSplitBlocks = kSplitPositions / kBlockTokens;

INLAY_LANES float larger(float a, float b) {
    return a > b ? a : b;
}
INLAY_LANES float first_lane(F32x16 a) {
    float x;
    store_partial(&x, a, 1);
    return x;
}

// Merges a later split's maximum, sum and outputs into a state (M, L, O). A sum of 0 means that no token was seen.
static void merge_state(float* state, float later_max, float later_sum, const float* later_output, size_t value_dim) {
    float* output = state + 2;
    if (later_sum == 0.0f) return;
    if (state[1] == 0.0f) {
        state[0] = later_max;
        state[1] = later_sum;
        for (size_t i = 0; i < value_dim; ++i) output[i] = later_output[i];
        return;
    }
    const float max = larger(state[0], later_max);
    const F32x16 factor = exp(broadcast(state[0] - max));
    const F32x16 later_factor = exp(broadcast(later_max - max));
    state[0] = max;
    state[1] = first_lane(fma(broadcast(state[1]), factor, broadcast(later_sum) * later_factor));
    for (size_t i = 0; i < value_dim; i += 16) {
        const size_t n = value_dim - i < 16 ? value_dim - i : 16;
        const F32x16 later = load_partial(later_output + i, n) * later_factor;
        store_partial(output + i, fma(load_partial(output + i, n), factor, later), n);
    }
}

// The tokens of a split that a row sees.
INLAY_LANES TokenRange seen_in_split(const AttentionTask& task, size_t row, size_t split) {
    const size_t start = split * kSplitPositions;
    const size_t end = size_t{task.first_position} + row + 1;
    const size_t first = task.window != 0 && end > task.window ? end - task.window : 0;
    if (end <= start || first >= start + kSplitPositions) return {0, 0};
    return {static_cast<uint32_t>(first > start ? first - start : 0),
            static_cast<uint32_t>(end - start < kSplitPositions ? end - start : kSplitPositions)};
}

INLAY_LANES const TileShape& shape_for(size_t n_pairs) {
    size_t i = 0;
    while (kTileShapes[i].pairs < n_pairs) ++i;
    return kTileShapes[i];
}

// Queries and fresh states of the pairs first_pair..first_pair + n_pairs; those that fill up the shape repeat the last.
static void start_tile(const AttentionTask& task, size_t first_pair, size_t n_pairs, size_t pairs, size_t split,
                       Tile& tile) {
    tile.pairs = pairs;
    for (size_t p = 0; p < pairs; ++p) {
        const size_t pair = first_pair + (p < n_pairs ? p : n_pairs - 1);
        const size_t row = pair / task.n_heads;
        const size_t head = pair % task.n_heads;
        tile.seen[p] = seen_in_split(task, row, split);
        const float* query = task.queries + row * task.query_row_stride + head * task.head_dim;
        for (size_t d = 0; d < task.head_dim; ++d) tile.queries[d * pairs + p] = query[d];
        for (size_t i = 0; i < task.value_dim; i += 16) store(tile.outputs + p * kMaxValueDim + i, zero());
    }
    store(tile.max, broadcast(-__builtin_inff()));
    store(tile.sum, zero());
    // Every batch reads whole groups of four vectors, also those that it has not written.
    for (size_t i = 0; i < kMaxVectors; ++i) store(tile.weights + i * kBlockTokens, zero());
    for (size_t i = 0; i < kVectorFloats; i += 16) {
        store(tile.block_max + i, zero());
        store(tile.new_max + i, zero());
        store(tile.rescale + i, zero());
        store(tile.block_sum + i, zero());
    }
}

// What the pairs see of one block.
static BlockView view_block(const Tile& tile, size_t block, const std::byte* values, bool partial) {
    constexpr uint8_t kAll = static_cast<uint8_t>(kBlockTokens);
    if (!partial) return {values, 0, 0, kAll, kAll, {}};
    BlockView view = {values, kAll, 0, kAll, 0, {}};
    for (size_t p = 0; p < tile.pairs; ++p) {
        const TokenRange range = seen_in_block(tile.seen[p], block);
        const uint8_t first = static_cast<uint8_t>(range.first);
        const uint8_t end = static_cast<uint8_t>(range.end);
        view.seen[p] = static_cast<uint16_t>((1u << end) - (1u << first));
        if (end < view.end_common) view.end_common = end;
        if (first > view.first_common) view.first_common = first;
        if (range.empty()) continue;
        if (first < view.first) view.first = first;
        if (end > view.end) view.end = end;
    }
    if (view.first_common >= view.end_common) view.first_common = view.end_common = view.end;
    return view;
}

// Scores of the blocks of one batch, as many at a time as there are registers for.
static void score_blocks(const AttentionTask& task, const TileShape& shape, const std::byte* const* keys,
                         size_t n_blocks, Tile& tile) {
    const MultiplyKeys* multiply_keys = shape.multiply_keys[static_cast<size_t>(task.key_type)];
    size_t done = 0;
    while (done < n_blocks) {
        size_t batch = kKeyBatches - 1;
        while (multiply_keys[batch] == nullptr || done + (size_t{1} << batch) > n_blocks) --batch;
        multiply_keys[batch](tile.queries, task.head_dim, task.scale, keys + done,
                             tile.weights + done * tile.pairs * kBlockTokens);
        done += size_t{1} << batch;
    }
}

// All blocks of the split that some pair sees.
static void attend_tile(const AttentionTask& task, size_t split, const TileShape& shape, Tile& tile) {
    TokenRange any = {static_cast<uint32_t>(kSplitPositions), 0};
    TokenRange all = {0, static_cast<uint32_t>(kSplitPositions)};
    for (size_t p = 0; p < tile.pairs; ++p) {
        const TokenRange seen = tile.seen[p];
        if (seen.first > all.first) all.first = seen.first;
        if (seen.end < all.end) all.end = seen.end;
        if (seen.empty()) continue;
        if (seen.first < any.first) any.first = seen.first;
        if (seen.end > any.end) any.end = seen.end;
    }
    const std::byte* const* pages = task.pages + split * kSplitBlocks;
    const MultiplyValues multiply_values = shape.multiply_values[static_cast<size_t>(task.value_type)];
    const size_t most_blocks = kMaxVectors / tile.pairs < kMaxBatch ? kMaxVectors / tile.pairs : kMaxBatch;
    // Blocks first_full..end_full are seen whole by all pairs; a batch has none or only such.
    const size_t end_block = (any.end + kBlockTokens - 1) / kBlockTokens;
    const size_t first_full = (all.first + kBlockTokens - 1) / kBlockTokens;
    const size_t end_full = all.end / kBlockTokens;
    size_t n_blocks = 0;
    for (size_t block = any.first / kBlockTokens; block < end_block; block += n_blocks) {
        const bool partial = block < first_full || block >= end_full;
        size_t limit = end_block;
        if (!partial) limit = end_full;
        if (block < first_full && first_full < end_block) limit = first_full;
        n_blocks = limit - block < most_blocks ? limit - block : most_blocks;
        const std::byte* keys[kMaxBatch];
        BlockView views[kMaxBatch];
        for (size_t b = 0; b < n_blocks; ++b) {
            keys[b] = pages[block + b] + task.key_offset;
            views[b] = view_block(tile, block + b, pages[block + b] + task.value_offset, partial);
        }
        score_blocks(task, shape, keys, n_blocks, tile);
        update_softmax(tile, block, n_blocks, partial);
        multiply_values(views, n_blocks, tile.weights, tile.rescale, task.value_dim, tile.outputs, kMaxValueDim);
    }
}

void attend(const AttentionTask& task, size_t first_split, size_t end_split, bool fresh, float* states) {
    const size_t state_floats = task.value_dim + 2;
    const size_t all_pairs = task.n_rows * task.n_heads;
    if (fresh) {
        for (size_t i = 0; i < all_pairs * state_floats; ++i) states[i] = 0.0f;
        for (size_t pair = 0; pair < all_pairs; ++pair) states[pair * state_floats] = -__builtin_inff();
    }
    Tile tile;
    const size_t n_tiles = (all_pairs + kMaxPairs - 1) / kMaxPairs;
    for (size_t split = first_split; split < end_split; ++split) {
        for (size_t i = 0; i < n_tiles; ++i) {
            const size_t first_pair = all_pairs * i / n_tiles;
            const size_t n_pairs = all_pairs * (i + 1) / n_tiles - first_pair;
            const TileShape& shape = shape_for(n_pairs);
            start_tile(task, first_pair, n_pairs, shape.pairs, split, tile);
            attend_tile(task, split, shape, tile);
            for (size_t p = 0; p < n_pairs; ++p) {
                merge_state(states + (first_pair + p) * state_floats, tile.max[p], tile.sum[p],
                            tile.outputs + p * kMaxValueDim, task.value_dim);
            }
        }
    }
}

void merge_attention(float* states, const float* later, size_t n_states, size_t value_dim) {
    const size_t state_floats = value_dim + 2;
    for (size_t i = 0; i < n_states; ++i) {
        const float* state = later + i * state_floats;
        merge_state(states + i * state_floats, state[0], state[1], state + 2, value_dim);
    }
}

void finish_attention(const float* states, size_t n_states, size_t value_dim, float* out) {
    for (size_t s = 0; s < n_states; ++s) {
        const float* state = states + s * (value_dim + 2);
        const F32x16 sum = broadcast(state[1]);
        for (size_t i = 0; i < value_dim; i += 16) {
            const size_t n = value_dim - i < 16 ? value_dim - i : 16;
            store_partial(out + s * value_dim + i, load_partial(state + 2 + i, n) / sum, n);
        }
    }
}

void store_keys(const float* k, size_t head_dim, KvType type, size_t slot, std::byte* keys) {
    for (size_t begin = 0; begin < head_dim; begin += 16) {
        const size_t n = head_dim - begin < 16 ? head_dim - begin : 16;
        if (type == KvType::kF32) {
            float* column = reinterpret_cast<float*>(keys) + begin * kBlockTokens + slot;
            for (size_t d = 0; d < n; ++d) column[d * kBlockTokens] = k[begin + d];
        } else {
            uint16_t halves[16];
            store_f16(halves, load_partial(k + begin, n));
            uint16_t* column = reinterpret_cast<uint16_t*>(keys) + begin * kBlockTokens + slot;
            for (size_t d = 0; d < n; ++d) column[d * kBlockTokens] = halves[d];
        }
    }
}

void store_values(const float* v, size_t value_dim, KvType type, size_t slot, std::byte* values) {
    for (size_t i = 0; i < value_dim; i += 16) {
        const size_t n = value_dim - i < 16 ? value_dim - i : 16;
        const F32x16 sixteen = load_partial(v + i, n);
        if (type == KvType::kF32) {
            store_partial(reinterpret_cast<float*>(values) + slot * value_dim + i, sixteen, n);
        } else {
            store_f16_partial(reinterpret_cast<uint16_t*>(values) + slot * value_dim + i, sixteen, n);
        }
    }
}

}  // namespace inlay::kernels::INLAY_ISA
