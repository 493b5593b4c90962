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
#include "tests/kernels/attention_sequence.h"
#include "tests/kernels/fast_tables.h"
#include "tests/sanitized.h"

using namespace inlay::kernels;
using inlay::test::fast_tables;

namespace {

using Shape = inlay::test::AttentionShape;
using Sequence = inlay::test::AttentionSequence;

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Calls visit(task, states of its rows) for tasks of at most `chunk` rows, and returns the states of all.
template <typename Visit>
std::vector<float> in_chunks(const Sequence& sequence, size_t chunk, const Visit& visit) {
    const size_t n_rows = sequence.shape().n_rows;
    std::vector<float> states(n_rows * sequence.row_state_floats(), 99.0f);
    for (size_t first = 0, end; first < n_rows; first = end) {
        end = sequence.task_end(first, chunk);
        visit(sequence.rows(first, end), states.data() + first * sequence.row_state_floats());
    }
    return states;
}

std::vector<float> attend_in_chunks(const Kernels& kernels, const Sequence& sequence, size_t chunk) {
    return in_chunks(sequence, chunk, [&](const AttentionTask& task, float* states) {
        kernels.attend(task, 0, sequence.n_splits(), true, states);
    });
}

// Every split into states of its own, then merged in order.
std::vector<float> attend_by_splits(const Kernels& kernels, const Sequence& sequence) {
    return in_chunks(sequence, sequence.shape().n_rows, [&](const AttentionTask& task, float* states) {
        std::vector<float> later(task.n_rows * sequence.row_state_floats(), 99.0f);
        kernels.attend(task, 0, 1, true, states);
        for (size_t split = 1; split < sequence.n_splits(); ++split) {
            kernels.attend(task, split, split + 1, true, later.data());
            kernels.merge_attention(states, later.data(), task.n_rows * task.n_heads, task.value_dim);
        }
    });
}

// One split after the other into the same states.
std::vector<float> attend_continuing(const Kernels& kernels, const Sequence& sequence) {
    return in_chunks(sequence, sequence.shape().n_rows, [&](const AttentionTask& task, float* states) {
        for (size_t split = 0; split < sequence.n_splits(); ++split)
            kernels.attend(task, split, split + 1, split == 0, states);
    });
}

std::vector<float> finish(const Kernels& kernels, const Sequence& sequence, const std::vector<float>& states) {
    const Shape& shape = sequence.shape();
    std::vector<float> out(shape.n_rows * shape.n_heads * shape.value_dim);
    kernels.finish_attention(states.data(), shape.n_rows * shape.n_heads, shape.value_dim, out.data());
    return out;
}

// Of what the reference computes from softmax attention in double.
double worst_error(const Sequence& sequence) {
    const Shape& shape = sequence.shape();
    const std::vector<float> output =
        finish(reference(), sequence, attend_in_chunks(reference(), sequence, shape.n_rows));
    double worst = 0.0;
    for (size_t row = 0; row < shape.n_rows; ++row) {
        for (size_t head = 0; head < shape.n_heads; ++head) {
            const std::vector<double> truth = sequence.naive(row, head);
            const float* actual = &output[(row * shape.n_heads + head) * shape.value_dim];
            for (size_t i = 0; i < shape.value_dim; ++i)
                worst = std::max(worst, std::fabs(truth[i] - static_cast<double>(actual[i])));
        }
    }
    return worst;
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

constexpr KvType kExactTypes[] = {KvType::kF32, KvType::kF16, KvType::kBf16};
constexpr KvType kTypes[] = {KvType::kF32, KvType::kF16, KvType::kBf16, KvType::kInt8, KvType::kInt4};
constexpr size_t kDimensions[] = {8, 16, 24, 40, 64, 72, 80, 96, 128, 256};
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
            CHECK(worst_error(Sequence(shape, generator)) < 4e-6);
        }
    }
}

// What rounding queries to 1023 and weights to 32767 steps leaves.
TEST_CASE("the definition of attention with quantised keys and values is softmax attention with what blocks hold") {
    std::mt19937 generator(8);
    for (KvType key_type : kTypes) {
        for (KvType value_type : kTypes) {
            for (bool exact_first : {false, true}) {
                const Shape shape = {96, 40, 2, 600, 1021, 7, key_type, value_type, exact_first};
                if (!shape.quantized()) continue;
                INFO(describe(shape));
                CHECK(worst_error(Sequence(shape, generator)) < 0.03);
            }
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
            for (KvType type : kExactTypes) {
                std::vector<float> x(dim);
                for (float& value : x) value = normal(generator);
                // Ties, overflow, subnormal and tiny halves.
                const float edges[] = {65519.9f,    65520.0f, -1e9f,     0x1.002p+0f,
                                       0x1.006p+0f, 0x1p-24f, -0x1p-25f, 0x1.8p-25f};
                std::copy(std::begin(edges), std::end(edges), x.begin());
                const size_t bytes = key_code_bytes(type, dim);
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
        check_all_ways({64, 64, 3, 0, position, 1, KvType::kInt8, KvType::kInt4, position % 2 == 1}, generator);
    }
}

TEST_CASE("attention equals its definition for all types of keys and values") {
    std::mt19937 generator(9);
    size_t index = 0;
    for (KvType key_type : kTypes) {
        for (KvType value_type : kTypes) {
            for (bool exact_first : {false, true}) {
                if (!inlay::test::is_done(index++, 3)) continue;
                if (exact_first && !is_quantized(key_type) && !is_quantized(value_type)) continue;
                check_all_ways({64, 64, 3, 0, 1100, 20, key_type, value_type, exact_first}, generator);
                check_all_ways({80, 24, 4, 37, 527, 40, key_type, value_type, exact_first}, generator);
                check_all_ways({8, 8, 1, 0, 3, 30, key_type, value_type, exact_first}, generator);
                check_all_ways({256, 256, 2, 0, 40, 9, key_type, value_type, exact_first}, generator);
            }
        }
    }
}

TEST_CASE("attention equals its definition for every group size") {
    std::mt19937 generator(5);
    for (size_t n_heads = 1; n_heads <= 9; ++n_heads) {
        if (!inlay::test::is_done(n_heads, 4)) continue;
        for (uint32_t window : kWindows) {
            check_all_ways({32, 32, n_heads, window, 500, 30, KvType::kF16, KvType::kF32}, generator);
            check_all_ways({16, 24, n_heads, window, 1021, 5, KvType::kF32, KvType::kF16}, generator);
            check_all_ways({32, 32, n_heads, window, 505, 14, KvType::kInt8, KvType::kInt4}, generator);
            check_all_ways({24, 16, n_heads, window, 530, 14, KvType::kInt4, KvType::kInt8, true}, generator);
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
        shape.exact_first = generator() % 2 == 0;
        // The definition is slow: keep its work bounded.
        const size_t visible =
            shape.window ? std::min(shape.window, shape.first_position + 1) : shape.first_position + 1;
        const size_t work = visible * shape.n_heads * (shape.head_dim + shape.value_dim);
        shape.n_rows = std::min(shape.n_rows, 1 + 20000000 / (work + 1));
        check_all_ways(shape, generator);
    }
}
