// Stored weights are worth what the reference data says, bit for bit; so are 16-bit floats, both ways.
#include "kernels/reference/dequantize.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/reference/half.h"
#include "tests/npy.h"
#include "tests/reference_data.h"

using namespace inlay;
using namespace inlay::test;

namespace {

size_t count_different_bits(const std::vector<float>& a, const std::vector<float>& b) {
    size_t n = 0;
    for (size_t i = 0; i < a.size(); ++i) n += std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i]);
    return n;
}

}  // namespace

TEST_CASE("dequantised blocks equal the reference bit for bit") {
    const auto dir = data_dir() / "quant";
    const auto index = nlohmann::json::parse(read_file(dir / "index.json"));
    REQUIRE(index["types"].size() == 12);
    for (const auto& [type_name, facts] : index["types"].items()) {
        INFO(type_name);
        const auto type = tensor_type_from_id(facts["ggml_type"].get<uint32_t>());
        REQUIRE(type);
        CHECK(name(*type) == type_name);
        CHECK(block_size(*type) == facts["block_size"].get<size_t>());
        CHECK(type_size(*type) == facts["type_size"].get<size_t>());
        REQUIRE(can_dequantize(*type));

        const std::string blocks = read_file(dir / facts["raw"].get<std::string>());
        const auto expected = read_npy<float>(dir / facts["dequantised"].get<std::string>());
        const size_t n_values = expected.values.size();
        REQUIRE(row_size(*type, n_values) == blocks.size());
        std::vector<float> values(n_values, NAN);
        dequantize(*type, blocks.data(), n_values, values.data());
        CHECK(count_different_bits(values, expected.values) == 0);

        const std::string moved = "x" + blocks;  // blocks need no alignment
        dequantize(*type, moved.data() + 1, n_values, values.data());
        CHECK(count_different_bits(values, expected.values) == 0);
    }
}

TEST_CASE("f32 values pass unchanged, other types write nothing") {
    const std::vector<float> values = {0.0f, -0.0f, 1.5f, -INFINITY, 1e-45f};
    std::vector<float> out(values.size(), 7.0f);
    dequantize(TensorType::kIQ4_NL, values.data(), 32, out.data());
    CHECK(!can_dequantize(TensorType::kIQ4_NL));
    CHECK(out == std::vector<float>(values.size(), 7.0f));
    dequantize(TensorType::kF32, values.data(), values.size(), out.data());
    CHECK(count_different_bits(values, out) == 0);
    dequantize(TensorType::kQ4_0, nullptr, 0, nullptr);
}

TEST_CASE("rounding to 16 bits equals the reference") {
    const auto dir = data_dir() / "quant";
    const auto input = read_npy<float>(dir / "round_f32.npy");
    const auto half = read_npy<uint16_t>(dir / "round_f16_bits.npy");
    const auto bfloat = read_npy<uint16_t>(dir / "round_bf16_bits.npy");
    for (size_t i = 0; i < input.values.size(); ++i) {
        CHECK(float_to_half(input.values[i]) == half.values[i]);
        CHECK(float_to_bfloat16(input.values[i]) == bfloat.values[i]);
    }
}

TEST_CASE("all 65536 halves keep their bits through f32") {
    size_t n_wrong = 0;
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        const auto half = static_cast<uint16_t>(bits);
        const bool is_nan = (bits & 0x7fff) > 0x7c00;
        n_wrong += float_to_half(half_to_float(half)) != (is_nan ? bits | 0x200 : bits);
        const bool is_bfloat_nan = (bits & 0x7fff) > 0x7f80;
        n_wrong += float_to_bfloat16(bfloat16_to_float(half)) != (is_bfloat_nan ? bits | 0x40 : bits);
    }
    CHECK(n_wrong == 0);
}

// Between two neighbouring halves the middle goes to the even one, and its neighbours to the nearer one.
TEST_CASE("halves round to nearest even at every midpoint") {
    size_t n_wrong = 0;
    for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
        const auto low = static_cast<uint16_t>(bits);
        const auto high = static_cast<uint16_t>(bits + 1);
        const float middle = (half_to_float(low) + half_to_float(high)) / 2;  // exact
        n_wrong += float_to_half(middle) != ((low & 1) == 0 ? low : high);
        n_wrong += float_to_half(std::nextafter(middle, 0.0f)) != low;
        n_wrong += float_to_half(std::nextafter(middle, INFINITY)) != high;
        n_wrong += float_to_half(-middle) != (0x8000 | ((low & 1) == 0 ? low : high));
    }
    CHECK(n_wrong == 0);
    CHECK(float_to_half(65519.996f) == 0x7bff);
    CHECK(float_to_half(65520.0f) == 0x7c00);
    CHECK(float_to_half(std::numeric_limits<float>::max()) == 0x7c00);
    static_assert(half_to_float(0x3c00) == 1.0f && float_to_half(-2.0f) == 0xc000 && half_to_float(0x0001) == 0x1p-24f);
    static_assert(bfloat16_to_float(0x3f80) == 1.0f && float_to_bfloat16(1.0f) == 0x3f80);
}
