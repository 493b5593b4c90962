// Every table's products equal the reference bit for bit, alone and in a batch.
#include <catch2/catch.hpp>

#include <limits>

#include "tests/kernels/fast_tables.h"
#include "tests/kernels/sample_weights.h"

using namespace inlay;
using namespace inlay::test;
using kernels::Kernels;

namespace {

constexpr float kUntouched = -12345.0f;

enum class Input { kFloat, kOnce, kTwice };  // kOnce, kTwice: how often it is quantised

struct Product {
    size_t n_rows;
    size_t first_group;
    size_t end_group;
    bool with_bias;
    bool accumulate;
};

// One matrix and activations for it.
struct Case {
    Case(TensorType type, size_t n_outputs, size_t n_cols, size_t max_rows, Random& random)
        : weights(type, n_outputs, n_cols, random),
          x_stride(n_cols + 5),
          x(random_floats(max_rows * x_stride, random)),
          bias(random_floats(n_outputs, random)),
          y_stride(n_outputs + 3),
          start(random_floats(max_rows * y_stride, random)) {}

    std::vector<float> multiply(const Kernels& table, const Product& p, Input input, size_t first_row = 0) const {
        const auto& w = weights.matrix;
        std::vector<float> y = p.accumulate ? start : std::vector<float>(start.size(), kUntouched);
        const float* in = x.data() + first_row * x_stride;
        float* out = y.data() + first_row * y_stride;
        const float* b = p.with_bias ? bias.data() : nullptr;
        if (input != Input::kFloat) {
            const size_t bytes = p.n_rows * kernels::quantized_row_bytes(w.n_cols);
            AlignedBytes rows(2 * bytes);
            std::byte* rest = input == Input::kTwice ? rows.data() + bytes : nullptr;
            if (rest)
                table.quantize_rows_twice(in, x_stride, p.n_rows, w.n_cols, rows.data(), rest);
            else
                table.quantize_rows(in, x_stride, p.n_rows, w.n_cols, rows.data());
            table.multiply_quantized(w, rows.data(), rest, p.n_rows, p.first_group, p.end_group, b, p.accumulate, out,
                                     y_stride);
        } else {
            table.multiply_float(w, in, x_stride, p.n_rows, p.first_group, p.end_group, b, p.accumulate, out, y_stride);
        }
        return y;
    }

    void check(const Product& p, Input input) const {
        const std::vector<float> expected = multiply(kernels::reference(), p, input);
        for (const Kernels* table : fast_tables()) {
            const std::vector<float> y = multiply(*table, p, input);
            INFO(table->name << " " << name(weights.matrix.type) << " outputs " << weights.matrix.n_rows << " cols "
                             << weights.matrix.n_cols << " rows " << p.n_rows << " groups " << p.first_group << ".."
                             << p.end_group
                             << (input == Input::kFloat  ? " float"
                                 : input == Input::kOnce ? " quantised"
                                                         : " quantised twice"));
            REQUIRE(first_difference(expected.data(), y.data(), y.size()) == y.size());
        }
    }

    SampleMatrix weights;
    size_t x_stride;
    std::vector<float> x;
    std::vector<float> bias;
    size_t y_stride;
    std::vector<float> start;
};

void check_shapes(TensorType type, size_t n_outputs, size_t n_cols, Input input, Random& random) {
    const Case sample(type, n_outputs, n_cols, 33, random);
    const size_t groups = sample.weights.matrix.n_groups();
    for (const size_t n_rows : std::vector<size_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 33}) {
        const bool odd = n_rows % 2 != 0;
        sample.check({n_rows, 0, groups, odd, n_rows % 3 == 0}, input);
    }
    sample.check({2, groups / 2, groups, true, true}, input);
    sample.check({9, 0, groups / 2, false, false}, input);
}

}  // namespace

TEST_CASE("quantised products equal the reference", "[kernels]") {
    Random random(2);
    for (const TensorType type : kQuantizedTypes) {
        for (const size_t n_cols : std::vector<size_t>{32, 64, 96, 256, 512, 768, 1056}) {
            if (!kernels::can_pack(type, n_cols)) continue;
            for (const size_t n_outputs : std::vector<size_t>{1, 15, 16, 17, 100}) {
                if (n_outputs == 100 && n_cols > 256) continue;  // the reference is slow
                check_shapes(type, n_outputs, n_cols, Input::kOnce, random);
                check_shapes(type, n_outputs, n_cols, Input::kTwice, random);
            }
        }
    }
}

TEST_CASE("float products equal the reference", "[kernels]") {
    Random random(3);
    for (const TensorType type : kQuantizedTypes) {
        for (const size_t n_cols : std::vector<size_t>{32, 96, 256, 768}) {
            if (kernels::can_pack(type, n_cols)) check_shapes(type, 17, n_cols, Input::kFloat, random);
        }
    }
    for (const TensorType type : kFloatTypes) {
        for (const size_t n_cols : std::vector<size_t>{1, 31, 32, 33, 100, 256}) {
            for (const size_t n_outputs : std::vector<size_t>{1, 15, 16, 50})
                check_shapes(type, n_outputs, n_cols, Input::kFloat, random);
        }
    }
}

TEST_CASE("a row of a batch is the row alone", "[kernels]") {
    Random random(4);
    constexpr size_t kRows = 300;  // more than one pass over the groups
    for (const Input input : {Input::kFloat, Input::kOnce, Input::kTwice}) {
        for (const TensorType type : {TensorType::kQ4_1, TensorType::kQ8_0, TensorType::kQ6_K, TensorType::kF16}) {
            if (input != Input::kFloat && type == TensorType::kF16) continue;
            const Case sample(type, 40, 1536, kRows, random);
            for (const Kernels* table : fast_tables()) {
                const auto together = sample.multiply(*table, {kRows, 0, 3, true, false}, input);
                for (size_t row = 0; row < kRows; row += 7) {
                    const auto alone = sample.multiply(*table, {1, 0, 3, true, false}, input, row);
                    const size_t at = row * sample.y_stride;
                    INFO(table->name << " " << name(type) << " row " << row);
                    REQUIRE(first_difference(&together[at], &alone[at], 40) == 40);
                }
            }
        }
    }
}

TEST_CASE("rows are quantised as the reference does", "[kernels]") {
    Random random(5);
    constexpr size_t kBlocks = 4000;
    std::vector<float> x = random_floats(kBlocks * 32, random);
    const float kInfinity = std::numeric_limits<float>::infinity();
    const float specials[] = {0.0f, -0.0f, 1e-45f, -1e-38f, 3e38f, -3.4e38f, 0.5f, kInfinity, std::nanf("")};
    for (size_t block = 0; block < kBlocks; ++block) {
        // Blocks of every size of value, some with exact halves, some with one special value, one of zeros.
        const float scale = std::ldexp(1.0f, static_cast<int>(block % 250) - 140);
        for (size_t k = 0; k < 32; ++k) x[block * 32 + k] *= block == 0 ? 0.0f : scale;
        if (block % 5 == 0) {
            for (size_t k = 0; k < 32; ++k)
                x[block * 32 + k] = static_cast<float>(static_cast<int>(random() % 509) - 254) * 0.5f;
            x[block * 32] = 127.0f;
        }
        if (block % 7 == 0) x[block * 32 + random() % 32] = specials[random() % 9];
    }
    const auto check = [&](const char* name, const AlignedBytes& expected, const AlignedBytes& actual,
                           size_t n_blocks) {
        const auto* a = reinterpret_cast<const kernels::QuantizedBlock*>(expected.data());
        const auto* b = reinterpret_cast<const kernels::QuantizedBlock*>(actual.data());
        for (size_t i = 0; i < n_blocks; ++i) {
            INFO(name << " block " << i);
            REQUIRE(std::memcmp(a[i].q, b[i].q, 32) == 0);
            REQUIRE(same_bits(a[i].d, b[i].d));
            REQUIRE(same_bits(a[i].sum, b[i].sum));
            REQUIRE(same_bits(a[i].half_sum[0], b[i].half_sum[0]));
            REQUIRE(same_bits(a[i].half_sum[1], b[i].half_sum[1]));
            REQUIRE(std::memcmp(&a[i].minus_128_sum, &b[i].minus_128_sum, 16) == 0);
        }
    };
    const size_t bytes = kernels::quantized_row_bytes(kBlocks * 32);
    AlignedBytes expected(bytes);
    AlignedBytes first(bytes);
    AlignedBytes expected_rest(bytes);
    kernels::reference().quantize_rows(x.data(), kBlocks * 32, 1, kBlocks * 32, expected.data());
    kernels::reference().quantize_rows_twice(x.data(), 32, kBlocks, 32, first.data(), expected_rest.data());
    check("twice", expected, first, kBlocks);
    for (const Kernels* table : fast_tables()) {
        AlignedBytes actual(bytes);
        table->quantize_rows(x.data(), 32, kBlocks, 32, actual.data());
        check(table->name, expected, actual, kBlocks);
        AlignedBytes rest(bytes);
        table->quantize_rows_twice(x.data(), 32, kBlocks, 32, actual.data(), rest.data());
        check(table->name, expected, actual, kBlocks);
        check(table->name, expected_rest, rest, kBlocks);
    }
}

TEST_CASE("a row quantised twice keeps twice the bits") {
    Random random(5);
    constexpr size_t kColumns = 256;
    const std::vector<float> x = random_floats(kColumns, random);
    const size_t row_bytes = kernels::quantized_row_bytes(kColumns);
    AlignedBytes rows(2 * row_bytes);
    kernels::reference().quantize_rows_twice(x.data(), kColumns, 1, kColumns, rows.data(), rows.data() + row_bytes);
    const auto* first = reinterpret_cast<const kernels::QuantizedBlock*>(rows.data());
    const auto* second = reinterpret_cast<const kernels::QuantizedBlock*>(rows.data() + row_bytes);
    for (size_t i = 0; i < kColumns; ++i) {
        const int q = (first[i / 32].q[i % 32] << kernels::kRestBits) + second[i / 32].q[i % 32];
        const double d = static_cast<double>(second[i / 32].d);
        CHECK(std::abs(d * q - static_cast<double>(x[i])) <= 0.51 * d);
    }
}
