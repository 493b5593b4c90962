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

// The exact type of a block that is not closed.
INLAY_LANES bool is_quantized_type(KvType type) {
    return type == KvType::kInt8 || type == KvType::kInt4;
}
INLAY_LANES KvType exact_type_of(KvType type) {
    return is_quantized_type(type) ? KvType::kF16 : type;
}

// Queries and fresh states of the pairs first_pair..first_pair + n_pairs; those that fill up the shape repeat the last.
static void start_tile(const AttentionTask& task, size_t first_pair, size_t n_pairs, size_t pairs, size_t split,
                       Tile& tile) {
    tile.pairs = pairs;
    const bool quantized = is_quantized_type(task.key_type);
    for (size_t p = 0; p < pairs; ++p) {
        const size_t pair = first_pair + (p < n_pairs ? p : n_pairs - 1);
        const size_t row = pair / task.n_heads;
        const size_t head = pair % task.n_heads;
        tile.seen[p] = seen_in_split(task, row, split);
        const float* query = task.queries + row * task.query_row_stride + head * task.head_dim;
        if (quantized) quantize_query(query, task.head_dim, task.scale, p, tile);
        for (size_t d = 0; d < task.head_dim; ++d) tile.queries[d * pairs + p] = query[d];
        for (size_t i = 0; i < task.value_dim; i += 16) store(tile.outputs + p * kMaxValueDim + i, zero());
    }
    store(tile.max, broadcast(-__builtin_inff()));
    store(tile.sum, zero());
    // Every batch reads whole groups of four vectors, also those that it has not written.
    for (size_t i = 0; i < kMaxVectors; ++i) store(tile.weights + i * kBlockTokens, zero());
    float* const of_vectors[] = {tile.block_max, tile.new_max, tile.rescale, tile.block_sum, tile.largest_weight};
    for (float* floats : of_vectors)
        for (size_t i = 0; i < kVectorFloats; i += 16) store(floats + i, zero());
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

// Blocks that lie side by side, either all closed or all exact, and either all seen whole or not.
struct Batch {
    size_t n_blocks;
    KvType key_type;
    KvType value_type;
    bool partial;
    const std::byte* key_places[kMaxBatch];
    const std::byte* value_places[kMaxBatch];
    BlockView exact_values[kMaxBatch];  // where these are exact
    ClosedBlock keys[kMaxBatch];        // where they lie in pages
    ClosedBlock values[kMaxBatch];
};

// Where blocks begin to be something else. Numbers of blocks within the split.
struct Boundaries {
    size_t first_full, end_full;      // seen whole by all pairs
    size_t first_closed, end_closed;  // in their pages; the others are exact
    size_t end;
};

INLAY_LANES size_t next_boundary(const Boundaries& at, size_t block) {
    size_t next = at.end;
    const size_t all[] = {at.first_full, at.end_full, at.first_closed, at.end_closed};
    for (const size_t boundary : all)
        if (boundary > block && boundary < next) next = boundary;
    return next;
}

// Those of a batch are few and asked for when the batch is found, one batch ahead.
INLAY_LANES void ask_for_parameters(const AttentionTask& task, const ClosedBlock& keys, const ClosedBlock& values) {
    if (is_quantized_type(task.value_type)) prefetch(values.parameters);
    if (!is_quantized_type(task.key_type)) return;
    const size_t bytes = task.key_type == KvType::kInt4 ? 4 + 2 * task.head_dim : task.head_dim / 2;
    for (size_t offset = 0; offset < bytes; offset += 64) prefetch(keys.parameters + offset);
    prefetch(keys.parameters + bytes);
}

// The blocks from `block` of the split on, at most `n_blocks`.
static void find_batch(const AttentionTask& task, const Tile& tile, size_t split, size_t block, size_t n_blocks,
                       const Boundaries& at, Batch& batch) {
    const bool closed = block >= at.first_closed && block < at.end_closed;
    batch.n_blocks = n_blocks;
    batch.partial = block < at.first_full || block >= at.end_full;
    batch.key_type = closed ? task.key_type : exact_type_of(task.key_type);
    batch.value_type = closed ? task.value_type : exact_type_of(task.value_type);
    for (size_t b = 0; b < n_blocks; ++b) {
        const std::byte* keys = block < at.first_closed ? task.first_keys : task.own_keys;
        const std::byte* values = block < at.first_closed ? task.first_values : task.own_values;
        if (closed) {
            const std::byte* page = task.pages[split * kSplitBlocks + block + b];
            keys = page + task.key_offset;
            values = page + task.value_offset;
            batch.keys[b] = {keys, page + task.key_parameters_offset};
            batch.values[b] = {values, page + task.value_parameters_offset};
            ask_for_parameters(task, batch.keys[b], batch.values[b]);
        }
        batch.key_places[b] = keys;
        batch.value_places[b] = values;
        if (!is_quantized_type(batch.value_type))
            batch.exact_values[b] = view_block(tile, block + b, values, batch.partial);
    }
}

INLAY_LANES size_t element_bits(KvType type) {
    return type == KvType::kF32 ? 32 : type == KvType::kInt8 ? 8 : type == KvType::kInt4 ? 4 : 16;
}
// Bytes to ask for in each of `n_pieces` pieces of a product, of blocks of `dim` channels.
INLAY_LANES size_t ahead_step(KvType type, size_t dim, size_t n_pieces) {
    return (kBlockTokens * dim * element_bits(type) / 8 + n_pieces - 1) / n_pieces;
}

// Calls multiply(function, first block) for parts of the batch, as many blocks at a time as there are functions for.
template <typename Function, typename Multiply>
INLAY_LANES void in_key_batches(const Function (&functions)[kKeyBatches], size_t n_blocks, const Multiply& multiply) {
    size_t done = 0;
    while (done < n_blocks) {
        size_t batch = kKeyBatches - 1;
        while (functions[batch] == nullptr || done + (size_t{1} << batch) > n_blocks) --batch;
        multiply(functions[batch], done);
        done += size_t{1} << batch;
    }
}

// Asks for the batch's values meanwhile.
static void score_blocks(const AttentionTask& task, const TileShape& shape, const Batch& batch, Tile& tile) {
    const size_t type = static_cast<size_t>(batch.key_type);
    const size_t step = ahead_step(batch.value_type, task.value_dim, task.head_dim / 8);
    const auto scores_from = [&](size_t block) { return tile.weights + block * tile.pairs * kBlockTokens; };
    if (is_quantized_type(batch.key_type)) {
        const auto& functions = shape.quantized_keys[type - static_cast<size_t>(KvType::kInt8)].multiply;
        in_key_batches(functions, batch.n_blocks, [&](MultiplyQuantizedKeys multiply, size_t block) {
            multiply(tile.integer_queries, tile.query_scales, task.head_dim, batch.keys + block,
                     {batch.value_places + block, step}, scores_from(block));
        });
    } else {
        in_key_batches(shape.keys[type].multiply, batch.n_blocks, [&](MultiplyKeys multiply, size_t block) {
            multiply(tile.queries, task.head_dim, task.scale, batch.key_places + block,
                     {batch.value_places + block, step}, scores_from(block));
        });
    }
}

// Asks for the keys of the next batch meanwhile.
static void add_outputs(const AttentionTask& task, const TileShape& shape, const Batch& batch, const Batch& next,
                        Tile& tile) {
    const size_t type = static_cast<size_t>(batch.value_type);
    if (is_quantized_type(batch.value_type)) {
        quantize_weights(tile, batch.values, batch.n_blocks);
        const size_t n_pieces = 2 * passes_of(task.value_dim, quantized_value_vectors(tile.pairs));
        shape.quantized_values[type - static_cast<size_t>(KvType::kInt8)](
            batch.values, batch.n_blocks, {tile.integer_weights, tile.weight_factor, tile.rescale}, task.value_dim,
            {next.key_places, ahead_step(next.key_type, task.head_dim, n_pieces)}, tile.outputs, kMaxValueDim);
    } else {
        const size_t n_pieces = kBlockTokens * passes_of(task.value_dim, value_vectors(tile.pairs));
        shape.values[type](batch.exact_values, batch.n_blocks, tile.weights, tile.rescale, task.value_dim,
                           {next.key_places, ahead_step(next.key_type, task.head_dim, n_pieces)}, tile.outputs,
                           kMaxValueDim);
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
    const size_t first_block = split * kSplitBlocks;
    const size_t own_block = task.first_position / kBlockTokens;
    Boundaries at;
    at.first_full = (all.first + kBlockTokens - 1) / kBlockTokens;
    at.end_full = all.end / kBlockTokens;
    at.first_closed = task.first_keys != nullptr && split == 0 ? 1 : 0;
    at.end_closed = task.own_keys != nullptr && own_block >= first_block ? own_block - first_block : kSplitBlocks;
    at.end = (any.end + kBlockTokens - 1) / kBlockTokens;
    const size_t most_blocks = kMaxVectors / tile.pairs < kMaxBatch ? kMaxVectors / tile.pairs : kMaxBatch;
    const auto find = [&](size_t block, Batch& batch) {
        const size_t rest = next_boundary(at, block) - block;
        find_batch(task, tile, split, block, rest < most_blocks ? rest : most_blocks, at, batch);
    };
    Batch batches[2];
    if (any.empty()) return;
    size_t block = any.first / kBlockTokens;
    find(block, batches[0]);
    for (size_t i = 0; block < at.end; ++i) {
        const Batch& batch = batches[i % 2];
        Batch& next = batches[(i + 1) % 2];
        const size_t next_block = block + batch.n_blocks;
        next.n_blocks = 0;
        if (next_block < at.end) find(next_block, next);
        // What there is no next block for is asked for again where it was.
        if (next.n_blocks == 0) next.key_type = batch.key_type;
        for (size_t b = next.n_blocks; b < batch.n_blocks; ++b) next.key_places[b] = batch.key_places[b];
        score_blocks(task, shape, batch, tile);
        update_softmax(tile, block, batch.n_blocks, batch.partial);
        add_outputs(task, shape, batch, next, tile);
        block = next_block;
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

}  // namespace inlay::kernels::INLAY_ISA
