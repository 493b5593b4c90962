// Paged attention: every instruction set, chunking and split of the work equals the definition bit for bit, and the
// definition is softmax attention.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "tests/kernels/fast_tables.h"
#include "tests/sanitized.h"

using namespace inlay::kernels;
using inlay::test::fast_tables;

namespace {

struct Shape {
    size_t head_dim;
    size_t value_dim;
    size_t n_heads;  // query heads of the group
    uint32_t window;
    uint32_t first_position;
    size_t n_rows;
    KvType key_type;
    KvType value_type;
};

std::string describe(const Shape& shape) {
    const auto name = [](KvType type) { return type == KvType::kF32 ? "f32" : "f16"; };
    return "head_dim " + std::to_string(shape.head_dim) + ", value_dim " + std::to_string(shape.value_dim) +
           ", heads " + std::to_string(shape.n_heads) + ", window " + std::to_string(shape.window) + ", position " +
           std::to_string(shape.first_position) + ", rows " + std::to_string(shape.n_rows) + ", " +
           name(shape.key_type) + "/" + name(shape.value_type);
}

size_t element_bytes(KvType type) {
    return type == KvType::kF32 ? 4 : 2;
}

// A sequence's pages for one KV head, and rows of queries at its end. Whatever the rows do not see is NaN, and pages
// that lie wholly before the first row's window do not exist.
class Sequence {
public:
    Sequence(const Shape& shape, std::mt19937& generator) : shape_(shape) {
        std::normal_distribution<float> normal;
        const size_t n_tokens = shape.first_position + shape.n_rows;
        const size_t n_blocks = (n_tokens + kBlockTokens - 1) / kBlockTokens;
        const size_t first_seen =
            shape.window != 0 && shape.first_position + 1 > shape.window ? shape.first_position + 1 - shape.window : 0;
        value_offset_ = kKeyOffset + kBlockTokens * shape.head_dim * element_bytes(shape.key_type) + 64;
        const size_t page_bytes = value_offset_ + kBlockTokens * shape.value_dim * element_bytes(shape.value_type);
        memory_.assign(n_blocks * page_bytes, std::byte{0xff});
        // Pages in no order.
        std::vector<size_t> places(n_blocks);
        for (size_t i = 0; i < n_blocks; ++i) places[i] = i;
        std::shuffle(places.begin(), places.end(), generator);
        for (size_t block = 0; block < n_blocks; ++block) {
            const bool seen = (block + 1) * kBlockTokens > first_seen;
            pages_.push_back(seen ? memory_.data() + places[block] * page_bytes : nullptr);
        }
        keys_.resize(n_tokens * shape.head_dim);
        values_.resize(n_tokens * shape.value_dim);
        queries_.resize(shape.n_rows * row_stride());
        for (float& x : keys_) x = normal(generator) * 2.0f;
        for (float& x : values_) x = normal(generator);
        for (float& x : queries_) x = normal(generator) * 2.0f;
        for (size_t token = first_seen; token < n_tokens; ++token) {
            std::byte* page = const_cast<std::byte*>(pages_[token / kBlockTokens]);
            reference().store_keys(&keys_[token * shape.head_dim], shape.head_dim, shape.key_type, token % kBlockTokens,
                                   page + kKeyOffset);
            reference().store_values(&values_[token * shape.value_dim], shape.value_dim, shape.value_type,
                                     token % kBlockTokens, page + value_offset_);
        }
    }

    const Shape& shape() const { return shape_; }
    size_t n_splits() const { return (shape_.first_position + shape_.n_rows - 1) / kSplitPositions + 1; }
    size_t row_stride() const { return shape_.n_heads * shape_.head_dim + 5; }
    size_t row_state_floats() const { return shape_.n_heads * attention_state_floats(shape_.value_dim); }

    AttentionTask rows(size_t first, size_t end) const {
        return {queries_.data() + first * row_stride(),
                row_stride(),
                end - first,
                shape_.n_heads,
                shape_.head_dim,
                shape_.value_dim,
                static_cast<uint32_t>(shape_.first_position + first),
                shape_.window,
                1.0f / std::sqrt(static_cast<float>(shape_.head_dim)),
                shape_.key_type,
                shape_.value_type,
                pages_.data(),
                kKeyOffset,
                value_offset_};
    }

    // Softmax attention in double precision, from the unrounded keys and values.
    std::vector<double> naive(size_t row, size_t head) const {
        const size_t position = shape_.first_position + row;
        const size_t first = shape_.window != 0 && position + 1 > shape_.window ? position + 1 - shape_.window : 0;
        const float* query = queries_.data() + row * row_stride() + head * shape_.head_dim;
        std::vector<double> scores;
        for (size_t token = first; token <= position; ++token) {
            double score = 0.0;
            for (size_t d = 0; d < shape_.head_dim; ++d) {
                score += static_cast<double>(query[d]) * static_cast<double>(keys_[token * shape_.head_dim + d]);
            }
            scores.push_back(score / std::sqrt(static_cast<double>(shape_.head_dim)));
        }
        const double max = *std::max_element(scores.begin(), scores.end());
        double sum = 0.0;
        std::vector<double> output(shape_.value_dim);
        for (size_t token = first; token <= position; ++token) {
            const double weight = std::exp(scores[token - first] - max);
            sum += weight;
            for (size_t i = 0; i < shape_.value_dim; ++i) {
                output[i] += weight * static_cast<double>(values_[token * shape_.value_dim + i]);
            }
        }
        for (double& x : output) x /= sum;
        return output;
    }

private:
    static constexpr size_t kKeyOffset = 192;

    Shape shape_;
    size_t value_offset_;
    std::vector<std::byte> memory_;
    std::vector<const std::byte*> pages_;
    std::vector<float> keys_, values_, queries_;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// States of all rows, computed in chunks of rows.
std::vector<float> attend_in_chunks(const Kernels& kernels, const Sequence& sequence, size_t chunk) {
    const size_t n_rows = sequence.shape().n_rows;
    std::vector<float> states(n_rows * sequence.row_state_floats(), 99.0f);
    for (size_t first = 0; first < n_rows; first += chunk) {
        const size_t end = std::min(first + chunk, n_rows);
        kernels.attend(sequence.rows(first, end), 0, sequence.n_splits(), true,
                       states.data() + first * sequence.row_state_floats());
    }
    return states;
}

// Every split into states of its own, then merged in order.
std::vector<float> attend_by_splits(const Kernels& kernels, const Sequence& sequence) {
    const Shape& shape = sequence.shape();
    std::vector<float> states(shape.n_rows * sequence.row_state_floats(), 99.0f);
    std::vector<float> later = states;
    kernels.attend(sequence.rows(0, shape.n_rows), 0, 1, true, states.data());
    for (size_t split = 1; split < sequence.n_splits(); ++split) {
        kernels.attend(sequence.rows(0, shape.n_rows), split, split + 1, true, later.data());
        kernels.merge_attention(states.data(), later.data(), shape.n_rows * shape.n_heads, shape.value_dim);
    }
    return states;
}

// One split after the other into the same states.
std::vector<float> attend_continuing(const Kernels& kernels, const Sequence& sequence) {
    const Shape& shape = sequence.shape();
    std::vector<float> states(shape.n_rows * sequence.row_state_floats(), 99.0f);
    for (size_t split = 0; split < sequence.n_splits(); ++split) {
        kernels.attend(sequence.rows(0, shape.n_rows), split, split + 1, split == 0, states.data());
    }
    return states;
}

std::vector<float> finish(const Kernels& kernels, const Sequence& sequence, const std::vector<float>& states) {
    const Shape& shape = sequence.shape();
    std::vector<float> out(shape.n_rows * shape.n_heads * shape.value_dim);
    kernels.finish_attention(states.data(), shape.n_rows * shape.n_heads, shape.value_dim, out.data());
    return out;
}

void check_all_ways(const Shape& shape, std::mt19937& generator) {
    INFO(describe(shape));
    const Sequence sequence(shape, generator);
    const std::vector<float> expected = attend_in_chunks(reference(), sequence, shape.n_rows);
    const std::vector<float> expected_output = finish(reference(), sequence, expected);
    REQUIRE(std::all_of(expected_output.begin(), expected_output.end(), [](float x) { return std::isfinite(x); }));
    CHECK(same_bits(attend_by_splits(reference(), sequence), expected));
    for (const Kernels* kernels : fast_tables()) {
        INFO(kernels->name);
        for (size_t chunk : {size_t{1}, size_t{7}, size_t{16}, size_t{100}, shape.n_rows}) {
            INFO("chunk " << chunk);
            CHECK(same_bits(attend_in_chunks(*kernels, sequence, chunk), expected));
        }
        CHECK(same_bits(attend_by_splits(*kernels, sequence), expected));
        CHECK(same_bits(attend_continuing(*kernels, sequence), expected));
        CHECK(same_bits(finish(*kernels, sequence, expected), expected_output));
    }
}

constexpr KvType kTypes[] = {KvType::kF32, KvType::kF16};
constexpr size_t kDimensions[] = {8, 16, 40, 64, 72, 80, 96, 128, 256};
constexpr uint32_t kWindows[] = {0, 1, 5, 16, 17, 512, 700};

template <typename T, size_t n>
T choose(const T (&values)[n], std::mt19937& generator) {
    return values[generator() % n];
}

}  // namespace

TEST_CASE("the definition of attention is softmax attention") {
    std::mt19937 generator(1);
    for (uint32_t window : kWindows) {
        for (uint32_t position : {0u, 3u, 511u, 530u, 1100u}) {
            const Shape shape = {64, 48, 2, window, position, 3, KvType::kF32, KvType::kF32};
            INFO(describe(shape));
            const Sequence sequence(shape, generator);
            const std::vector<float> output =
                finish(reference(), sequence, attend_in_chunks(reference(), sequence, shape.n_rows));
            double worst = 0.0;
            for (size_t row = 0; row < shape.n_rows; ++row) {
                for (size_t head = 0; head < shape.n_heads; ++head) {
                    const std::vector<double> truth = sequence.naive(row, head);
                    const float* actual = &output[(row * shape.n_heads + head) * shape.value_dim];
                    for (size_t i = 0; i < shape.value_dim; ++i) {
                        worst = std::max(worst, std::fabs(truth[i] - static_cast<double>(actual[i])));
                    }
                }
            }
            CHECK(worst < 4e-6);
        }
    }
}

TEST_CASE("attention with f16 keys and values stays close to softmax attention") {
    std::mt19937 generator(2);
    const Shape shape = {64, 64, 3, 0, 700, 2, KvType::kF16, KvType::kF16};
    const Sequence sequence(shape, generator);
    const std::vector<float> output = finish(reference(), sequence, attend_in_chunks(reference(), sequence, 2));
    for (size_t head = 0; head < shape.n_heads; ++head) {
        const std::vector<double> truth = sequence.naive(1, head);
        for (size_t i = 0; i < shape.value_dim; ++i) {
            const float actual = output[(shape.n_heads + head) * shape.value_dim + i];
            REQUIRE(static_cast<double>(actual) == Approx(truth[i]).margin(0.02));
        }
    }
}

TEST_CASE("keys and values are stored alike") {
    std::mt19937 generator(3);
    std::normal_distribution<float> normal;
    for (const Kernels* kernels : fast_tables()) {
        INFO(kernels->name);
        for (size_t dim : kDimensions) {
            for (KvType type : kTypes) {
                std::vector<float> x(dim);
                for (float& value : x) value = normal(generator);
                // Ties, overflow, subnormal and tiny halves.
                const float edges[] = {65519.9f,    65520.0f, -1e9f,     0x1.002p+0f,
                                       0x1.006p+0f, 0x1p-24f, -0x1p-25f, 0x1.8p-25f};
                std::copy(std::begin(edges), std::end(edges), x.begin());
                const size_t bytes = dim * kBlockTokens * element_bytes(type);
                std::vector<std::byte> expected_keys(bytes), keys(bytes), expected_values(bytes), values(bytes);
                for (size_t slot = 0; slot < kBlockTokens; slot += 5) {
                    reference().store_keys(x.data(), dim, type, slot, expected_keys.data());
                    reference().store_values(x.data(), dim, type, slot, expected_values.data());
                    kernels->store_keys(x.data(), dim, type, slot, keys.data());
                    kernels->store_values(x.data(), dim, type, slot, values.data());
                }
                CHECK(keys == expected_keys);
                CHECK(values == expected_values);
            }
        }
    }
}

TEST_CASE("one row of attention equals its definition at every length") {
    std::mt19937 generator(4);
    for (uint32_t position = 0; position < 1600; position += position < 70 ? 1 : 37) {
        check_all_ways({64, 64, 3, 0, position, 1, KvType::kF16, KvType::kF16}, generator);
    }
}

TEST_CASE("attention equals its definition for every group size") {
    std::mt19937 generator(5);
    for (size_t n_heads = 1; n_heads <= 9; ++n_heads) {
        if (!inlay::test::is_done(n_heads, 4)) continue;
        for (uint32_t window : kWindows) {
            check_all_ways({32, 32, n_heads, window, 500, 30, KvType::kF16, KvType::kF32}, generator);
            check_all_ways({16, 24, n_heads, window, 1021, 5, KvType::kF32, KvType::kF16}, generator);
        }
    }
}

TEST_CASE("attention equals its definition for every head dimension") {
    std::mt19937 generator(6);
    for (size_t head_dim : kDimensions) {
        for (size_t value_dim : kDimensions) {
            if (!inlay::test::is_done((head_dim + 3 * value_dim) / 8, 3)) continue;
            const KvType key_type = choose(kTypes, generator);
            check_all_ways({head_dim, value_dim, 2, 0, 40, 20, key_type, choose(kTypes, generator)}, generator);
        }
    }
}

TEST_CASE("attention equals its definition over random shapes") {
    std::mt19937 generator(7);
    constexpr size_t kRows[] = {1, 2, 3, 7, 16, 33, 100};
    for (int i = 0; i < (inlay::test::kSlowed ? 8 : 60); ++i) {
        Shape shape;
        shape.head_dim = 8 * (1 + generator() % 12);
        shape.value_dim = 8 * (1 + generator() % 12);
        shape.n_heads = 1 + generator() % 9;
        shape.window = choose(kWindows, generator);
        shape.first_position = static_cast<uint32_t>(generator() % 1600);
        shape.n_rows = choose(kRows, generator);
        shape.key_type = choose(kTypes, generator);
        shape.value_type = choose(kTypes, generator);
        // The definition is slow: keep its work bounded.
        const size_t visible =
            shape.window ? std::min(shape.window, shape.first_position + 1) : shape.first_position + 1;
        const size_t work = visible * shape.n_heads * (shape.head_dim + shape.value_dim);
        shape.n_rows = std::min(shape.n_rows, 1 + 20000000 / (work + 1));
        check_all_ways(shape, generator);
    }
}
