// The softmax of one tile of attention: its state over the blocks of a split, and the step that turns a batch of scores
// into weights. The steps of docs/numerics.md are taken block after block; only the exponentials of a batch are taken
// together.
#include "kernels/kernels.h"

namespace inlay::kernels::INLAY_ISA {

constexpr size_t kMaxValueDim = kMaxHeadDim;
// Arrays with one float for each vector of a batch are read and written sixteen at a time from any vector on.
constexpr size_t kVectorFloats = kMaxVectors + 16;

struct TokenRange {
    uint32_t first, end;  // none where end <= first

    bool empty() const { return end <= first; }
};

// Several (row, head) pairs at one split. Lies on the stack: about 40 KiB at most.
struct Tile {
    alignas(64) float queries[kMaxHeadDim * kMaxPairs];     // [head_dim, pairs]
    alignas(64) float outputs[kMaxPairs * kMaxValueDim];    // [pairs, kMaxValueDim]
    alignas(64) float weights[kMaxVectors * kBlockTokens];  // [blocks, pairs, 16]: scores, then weights of a batch
    alignas(64) float block_max[kVectorFloats];             // [blocks, pairs]: of the scores
    alignas(64) float new_max[kVectorFloats];               // [blocks, pairs]: of all scores so far
    alignas(64) float rescale[kVectorFloats];               // [blocks, pairs]: factor for what was before the block
    alignas(64) float block_sum[kVectorFloats];             // [blocks, pairs]: of the weights
    alignas(64) float max[16];                              // [pairs]
    alignas(64) float sum[16];                              // [pairs]

    // For quantised keys and values.
    alignas(64) int16_t integer_queries[kMaxHeadDim * kMaxPairs];     // [head_dim / 2, pairs, 2]
    alignas(64) int16_t integer_weights[kMaxVectors * kBlockTokens];  // [blocks, pairs, 16]
    alignas(64) float largest_weight[kVectorFloats];                  // [blocks, pairs]: times the value's scale
    alignas(64) float weight_factor[kVectorFloats];                   // [blocks, pairs]: of the integer weights
    float query_scales[16];                                           // [pairs]

    TokenRange seen[kMaxPairs];  // tokens of the split
    size_t pairs;
};

// The tokens of block `block` of the split that a pair sees, counted from the block's first.
INLAY_LANES TokenRange seen_in_block(TokenRange seen, size_t block) {
    const uint32_t start = static_cast<uint32_t>(block * kBlockTokens);
    const uint32_t limit = start + static_cast<uint32_t>(kBlockTokens);
    if (seen.empty() || seen.end <= start || seen.first >= limit) return {0, 0};
    return {seen.first > start ? seen.first - start : 0, (seen.end < limit ? seen.end : limit) - start};
}

INLAY_LANES F32x16 select_range(TokenRange range, F32x16 inside, F32x16 outside) {
    return select(first_lanes(range.first), outside, select(first_lanes(range.end), inside, outside));
}

// Scores to weights for a batch of blocks from `first_block` on; brings maxima and sums up to date and leaves the
// factors for the outputs in `rescale`. `partial`: not every pair sees every token.
static void update_softmax(Tile& tile, size_t first_block, size_t n_blocks, bool partial) {
    const size_t pairs = tile.pairs;
    const size_t n = pairs * n_blocks;
    const F32x16 minus_infinity = broadcast(-__builtin_inff());
    TokenRange ranges[kMaxVectors];
    if (partial) {
        for (size_t i = 0; i < n; ++i) {
            ranges[i] = seen_in_block(tile.seen[i % pairs], first_block + i / pairs);
            float* scores = tile.weights + i * kBlockTokens;
            store(scores, select_range(ranges[i], load(scores), minus_infinity));
        }
    }
    for (size_t i = 0; i < n; i += 4) {
        fold_four(tile.weights + i * kBlockTokens, tile.block_max + i, [](F32x16 a, F32x16 b) { return max(a, b); });
    }
    F32x16 running_max = load(tile.max);
    for (size_t b = 0; b < n_blocks; ++b) {
        const F32x16 next = max(running_max, load(tile.block_max + b * pairs));
        // The lanes from `pairs` on mean nothing; the next block overwrites them.
        store(tile.new_max + b * pairs, next);
        store(tile.rescale + b * pairs, running_max - next);
        running_max = next;
    }
    store(tile.max, running_max);
    for (size_t i = 0; i < n; i += 16) store(tile.rescale + i, exp(load(tile.rescale + i)));
    if (partial) {
        for (size_t i = 0; i < n; ++i) {
            if (ranges[i].empty()) tile.rescale[i] = 1.0f;
        }
    }
    for (size_t i = 0; i < n; ++i) {
        float* weights = tile.weights + i * kBlockTokens;
        F32x16 weight = exp(load(weights) - broadcast(tile.new_max[i]));
        if (partial) weight = select_range(ranges[i], weight, zero());
        store(weights, weight);
    }
    for (size_t i = 0; i < n; i += 4) {
        fold_four(tile.weights + i * kBlockTokens, tile.block_sum + i, [](F32x16 a, F32x16 b) { return a + b; });
    }
    F32x16 running_sum = load(tile.sum);
    for (size_t b = 0; b < n_blocks; ++b) {
        running_sum = fma(running_sum, load(tile.rescale + b * pairs), load(tile.block_sum + b * pairs));
    }
    store(tile.sum, running_sum);
}

}  // namespace inlay::kernels::INLAY_ISA
