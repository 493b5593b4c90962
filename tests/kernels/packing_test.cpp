// Packed weights are worth what the file says.
#include <catch2/catch.hpp>

#include <fstream>
#include <iterator>

#include "kernels/packed_matrix.h"
#include "kernels/reference/dequantize.h"
#include "reference_data.h"
#include "tests/kernels/sample_weights.h"

using namespace inlay;
using namespace inlay::test;

namespace {

void check_unpacked(const SampleMatrix& sample) {
    const size_t n_cols = sample.matrix.n_cols;
    std::vector<float> expected(n_cols);
    std::vector<float> values(n_cols);
    for (size_t row = 0; row < sample.matrix.n_rows; ++row) {
        dequantize(sample.matrix.type, sample.rows.data() + row * row_size(sample.matrix.type, n_cols), n_cols,
                   expected.data());
        kernels::unpack_row(sample.matrix, row, values.data());
        INFO("row " << row);
        REQUIRE(first_difference(expected.data(), values.data(), n_cols) == n_cols);
    }
}

}  // namespace

TEST_CASE("packed rows unpack to the dequantised values", "[kernels]") {
    Random random(1);
    for (const TensorType type : kQuantizedTypes) {
        for (const size_t n_cols : {size_t{32}, size_t{96}, size_t{256}, size_t{576}, size_t{768}}) {
            if (!kernels::can_pack(type, n_cols)) continue;
            for (const size_t n_rows : {size_t{1}, size_t{16}, size_t{37}}) {
                INFO(name(type) << " " << n_rows << " x " << n_cols);
                check_unpacked(SampleMatrix(type, n_rows, n_cols, random));
            }
        }
    }
    for (const TensorType type : kFloatTypes) {
        for (const size_t n_cols : {size_t{1}, size_t{31}, size_t{64}, size_t{100}}) {
            INFO(name(type) << " " << n_cols);
            check_unpacked(SampleMatrix(type, 19, n_cols, random));
        }
    }
}

TEST_CASE("only whole blocks of known types can be packed", "[kernels]") {
    CHECK(kernels::can_pack(TensorType::kF16, 7));
    CHECK(kernels::can_pack(TensorType::kQ4_0, 96));
    CHECK(kernels::can_pack(TensorType::kQ6_K, 512));
    CHECK_FALSE(kernels::can_pack(TensorType::kF32, 0));
    CHECK_FALSE(kernels::can_pack(TensorType::kQ4_0, 100));
    CHECK_FALSE(kernels::can_pack(TensorType::kQ4_K, 96));
    CHECK_FALSE(kernels::can_pack(TensorType::kIQ4_NL, 256));
    CHECK_FALSE(kernels::can_pack(TensorType::kI32, 32));
}

TEST_CASE("packed groups stay near the size in the file and on cache lines", "[kernels]") {
    for (const TensorType type : kQuantizedTypes) {
        const size_t packed = kernels::packed_group_bytes(type, 4096);
        const size_t in_file = kernels::kGroupRows * row_size(type, 4096);
        INFO(name(type) << " " << packed << " for " << in_file);
        CHECK(packed % 64 == 0);
        CHECK(packed * 100 <= in_file * (type == TensorType::kQ3_K ? 106 : 103));
    }
}

TEST_CASE("real blocks with special scales unpack bit for bit", "[kernels]") {
    if (reference_dir().empty()) INLAY_SKIP("no reference data");
    for (const TensorType type : kQuantizedTypes) {
        const auto path = reference_dir() / "quant" / (std::string(name(type)) + ".bin");
        INFO(path.string());
        std::ifstream file(path, std::ios::binary);
        REQUIRE(file);
        const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
        const size_t n_blocks = bytes.size() / type_size(type);
        const size_t n_cols = block_size(type);
        std::vector<float> expected(n_cols);
        std::vector<float> values(n_cols);
        AlignedBytes packed(kernels::packed_group_bytes(type, n_cols));
        for (size_t first = 0; first < n_blocks; first += kernels::kGroupRows) {
            const size_t n = std::min(n_blocks - first, kernels::kGroupRows);
            const auto* rows = reinterpret_cast<const std::byte*>(bytes.data()) + first * type_size(type);
            kernels::pack_group(type, rows, n, n_cols, packed.data());
            const kernels::PackedMatrix matrix = {type, 16, static_cast<uint32_t>(n_cols), packed.data()};
            for (size_t row = 0; row < n; ++row) {
                dequantize(type, rows + row * type_size(type), n_cols, expected.data());
                kernels::unpack_row(matrix, row, values.data());
                REQUIRE(first_difference(expected.data(), values.data(), n_cols) == n_cols);
            }
        }
    }
}
