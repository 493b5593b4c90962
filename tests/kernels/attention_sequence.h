// A sequence of random keys and values in the pages of one KV head, for tests of attention.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "tests/kernels/decode_kv.h"
#include "tests/kernels/sample_weights.h"

namespace inlay::test {

using namespace inlay::kernels;

struct AttentionShape {
    size_t head_dim;
    size_t value_dim;
    size_t n_heads;  // query heads of the group
    uint32_t window;
    uint32_t first_position;
    size_t n_rows;
    KvType key_type;
    KvType value_type;
    bool exact_first = false;  // of a quantised cache: block 0 is exact for all rows

    bool quantized() const { return is_quantized(key_type) || is_quantized(value_type); }
};

inline std::string describe(const AttentionShape& shape) {
    constexpr const char* kNames[] = {"f32", "f16", "bf16", "int8", "int4"};
    const auto name = [&](KvType type) { return std::string(kNames[static_cast<size_t>(type)]); };
    return "head_dim " + std::to_string(shape.head_dim) + ", value_dim " + std::to_string(shape.value_dim) +
           ", heads " + std::to_string(shape.n_heads) + ", window " + std::to_string(shape.window) + ", position " +
           std::to_string(shape.first_position) + ", rows " + std::to_string(shape.n_rows) + ", " +
           name(shape.key_type) + "/" + name(shape.value_type) + (shape.exact_first ? ", first exact" : "");
}

// Pages for one KV head, and rows of queries at the sequence's end. Whatever the rows do not see is NaN in exact tiles,
// and pages that lie wholly before the first row's window do not exist. In a quantised cache every block has exact
// tiles beside its page; a task gets those of its own block (and of block 0), and null for their pages.
class AttentionSequence {
public:
    AttentionSequence(const AttentionShape& shape, std::mt19937& generator) : shape_(shape) {
        std::normal_distribution<float> normal;
        const size_t n_tokens = shape.first_position + shape.n_rows;
        n_blocks_ = (n_tokens + kBlockTokens - 1) / kBlockTokens;
        first_seen_ =
            shape.window != 0 && shape.first_position + 1 > shape.window ? shape.first_position + 1 - shape.window : 0;
        keys_.resize(n_tokens * shape.head_dim);
        values_.resize(n_tokens * shape.value_dim);
        queries_.resize(shape.n_rows * row_stride());
        for (float& x : keys_) x = normal(generator) * 2.0f;
        for (float& x : values_) x = normal(generator);
        for (float& x : queries_) x = normal(generator) * 2.0f;
        place_parts();
        // Pages in no order.
        std::vector<size_t> places(n_blocks_);
        for (size_t i = 0; i < n_blocks_; ++i) places[i] = i;
        std::shuffle(places.begin(), places.end(), generator);
        memory_ = AlignedBytes(n_blocks_ * page_bytes_);
        tiles_ = AlignedBytes(shape.quantized() ? n_blocks_ * tile_bytes() : 0);
        std::fill_n(memory_.data(), n_blocks_ * page_bytes_, std::byte{0xff});
        if (shape.quantized()) std::fill_n(tiles_.data(), n_blocks_ * tile_bytes(), std::byte{0xff});
        for (size_t block = 0; block < n_blocks_; ++block) {
            const bool seen = (block + 1) * kBlockTokens > first_seen_;
            pages_.push_back(seen ? memory_.data() + places[block] * page_bytes_ : nullptr);
        }
        for (size_t token = 0; token < n_tokens; ++token) store(token);
        if (shape.quantized())
            for (size_t block = 0; (block + 1) * kBlockTokens <= n_tokens; ++block) close(block);
        for (size_t block = 0; block < n_blocks_; ++block) make_task_pages(block);
    }

    const AttentionShape& shape() const { return shape_; }
    size_t n_splits() const { return (shape_.first_position + shape_.n_rows - 1) / kSplitPositions + 1; }
    size_t row_stride() const { return shape_.n_heads * shape_.head_dim + 5; }
    size_t row_state_floats() const { return shape_.n_heads * attention_state_floats(shape_.value_dim); }

    // Rows first..end; in a quantised cache they must lie in one block.
    AttentionTask rows(size_t first, size_t end) const {
        AttentionTask task = {.queries = queries_.data() + first * row_stride(),
                              .query_row_stride = row_stride(),
                              .n_rows = end - first,
                              .n_heads = shape_.n_heads,
                              .head_dim = shape_.head_dim,
                              .value_dim = shape_.value_dim,
                              .first_position = static_cast<uint32_t>(shape_.first_position + first),
                              .window = shape_.window,
                              .scale = scale(),
                              .key_type = shape_.key_type,
                              .value_type = shape_.value_type,
                              .pages = nullptr,
                              .key_offset = kKeyOffset,
                              .value_offset = value_offset_,
                              .key_parameters_offset = key_parameters_offset_,
                              .value_parameters_offset = value_parameters_offset_};
        const size_t block = task.first_position / kBlockTokens;
        task.pages = task_pages_[block].data();
        if (!shape_.quantized()) return task;
        task.own_keys = exact_keys(block);
        task.own_values = exact_values(block);
        if (shape_.exact_first && block > 0) {
            task.first_keys = exact_keys(0);
            task.first_values = exact_values(0);
        }
        return task;
    }

    // The end of the rows of the same task as `first`, of which there are at most `chunk`.
    size_t task_end(size_t first, size_t chunk) const {
        size_t end = std::min(first + chunk, shape_.n_rows);
        if (shape_.quantized()) {
            const size_t block = (shape_.first_position + first) / kBlockTokens;
            end = std::min(end, (block + 1) * kBlockTokens - shape_.first_position);
        }
        return end;
    }

    // Softmax attention in double precision over the exact keys and values and, where the row sees these, over what
    // closed blocks hold.
    std::vector<double> naive(size_t row, size_t head) const {
        const size_t position = shape_.first_position + row;
        const size_t first = shape_.window != 0 && position + 1 > shape_.window ? position + 1 - shape_.window : 0;
        const float* query = queries_.data() + row * row_stride() + head * shape_.head_dim;
        std::vector<double> keys, values;  // of one block
        std::vector<double> scores, output(shape_.value_dim), all_values;
        for (size_t token = first; token <= position; ++token) {
            const size_t block = token / kBlockTokens;
            const bool exact =
                !shape_.quantized() || block == position / kBlockTokens || (block == 0 && shape_.exact_first);
            if (token == first || token % kBlockTokens == 0) decode(block, exact, keys, values);
            double score = 0.0;
            for (size_t d = 0; d < shape_.head_dim; ++d)
                score += static_cast<double>(query[d]) * keys[token % kBlockTokens * shape_.head_dim + d];
            scores.push_back(score * static_cast<double>(scale()));
            const auto value = values.begin() + static_cast<ptrdiff_t>(token % kBlockTokens * shape_.value_dim);
            all_values.insert(all_values.end(), value, value + static_cast<ptrdiff_t>(shape_.value_dim));
        }
        const double max = *std::max_element(scores.begin(), scores.end());
        double sum = 0.0;
        for (size_t i = 0; i < scores.size(); ++i) {
            const double weight = std::exp(scores[i] - max);
            sum += weight;
            for (size_t c = 0; c < shape_.value_dim; ++c) output[c] += weight * all_values[i * shape_.value_dim + c];
        }
        for (double& x : output) x /= sum;
        return output;
    }

private:
    static constexpr size_t kKeyOffset = 192;

    float scale() const { return 1.0f / std::sqrt(static_cast<float>(shape_.head_dim)); }

    void place_parts() {
        const auto round_up = [](size_t n) { return (n + 63) / 64 * 64; };
        value_offset_ = kKeyOffset + key_code_bytes(shape_.key_type, shape_.head_dim) + 64;
        key_parameters_offset_ = value_offset_ + value_code_bytes(shape_.value_type, shape_.value_dim) + 4;
        value_parameters_offset_ = key_parameters_offset_ + key_parameter_bytes(shape_.key_type, shape_.head_dim) + 8;
        page_bytes_ = round_up(value_parameters_offset_ + value_parameter_bytes(shape_.value_type));
    }
    size_t exact_key_bytes() const { return key_code_bytes(exact_type(shape_.key_type), shape_.head_dim); }
    size_t exact_value_bytes() const { return value_code_bytes(exact_type(shape_.value_type), shape_.value_dim); }
    size_t tile_bytes() const { return exact_key_bytes() + exact_value_bytes(); }
    std::byte* page(size_t block) const { return const_cast<std::byte*>(pages_[block]); }
    std::byte* exact_keys(size_t block) const {
        if (!shape_.quantized()) return page(block) + kKeyOffset;
        return const_cast<std::byte*>(tiles_.data()) + block * tile_bytes();
    }
    std::byte* exact_values(size_t block) const {
        return shape_.quantized() ? exact_keys(block) + exact_key_bytes() : page(block) + value_offset_;
    }

    void store(size_t token) {
        const size_t block = token / kBlockTokens;
        if (!shape_.quantized() && token < first_seen_) return;
        reference().store_keys(&keys_[token * shape_.head_dim], shape_.head_dim, exact_type(shape_.key_type),
                               token % kBlockTokens, exact_keys(block));
        reference().store_values(&values_[token * shape_.value_dim], shape_.value_dim, exact_type(shape_.value_type),
                                 token % kBlockTokens, exact_values(block));
    }

    void close(size_t block) {
        if (pages_[block] == nullptr) return;
        std::byte* keys = page(block) + kKeyOffset;
        std::byte* values = page(block) + value_offset_;
        if (is_quantized(shape_.key_type)) {
            reference().close_keys(exact_keys(block), shape_.head_dim, shape_.key_type, keys,
                                   page(block) + key_parameters_offset_);
        } else {
            std::copy_n(exact_keys(block), exact_key_bytes(), keys);
        }
        if (is_quantized(shape_.value_type)) {
            reference().close_values(exact_values(block), shape_.value_dim, shape_.value_type, values,
                                     page(block) + value_parameters_offset_);
        } else {
            std::copy_n(exact_values(block), exact_value_bytes(), values);
        }
    }

    void make_task_pages(size_t own_block) {
        task_pages_.push_back(pages_);
        if (!shape_.quantized()) return;
        task_pages_.back()[own_block] = nullptr;
        if (shape_.exact_first) task_pages_.back()[0] = nullptr;
    }

    // Keys and values of a block, [16 tokens, dim] each.
    void decode(size_t block, bool exact, std::vector<double>& keys, std::vector<double>& values) const {
        const auto take = [&](const std::vector<float>& all, size_t dim, std::vector<double>& out) {
            out.assign(kBlockTokens * dim, 0.0);
            const size_t begin = block * kBlockTokens * dim;
            const size_t n = std::min(out.size(), all.size() - begin);
            std::copy_n(all.begin() + static_cast<ptrdiff_t>(begin), n, out.begin());
        };
        take(keys_, shape_.head_dim, keys);
        take(values_, shape_.value_dim, values);
        if (exact) return;
        if (is_quantized(shape_.key_type))
            keys = decode_keys(shape_.key_type, page(block) + kKeyOffset, page(block) + key_parameters_offset_,
                               shape_.head_dim);
        if (is_quantized(shape_.value_type))
            values = decode_values(shape_.value_type, page(block) + value_offset_,
                                   page(block) + value_parameters_offset_, shape_.value_dim);
    }

    AttentionShape shape_;
    size_t n_blocks_;
    size_t first_seen_;
    size_t value_offset_, key_parameters_offset_, value_parameters_offset_, page_bytes_;
    AlignedBytes memory_{0}, tiles_{0};
    std::vector<const std::byte*> pages_;
    std::vector<std::vector<const std::byte*>> task_pages_;  // by own block
    std::vector<float> keys_, values_, queries_;
};

}  // namespace inlay::test
