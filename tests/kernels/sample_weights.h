// Random weights and activations for the tests of packing and products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "base/tensor_type.h"
#include "kernels/kernels.h"
#include "kernels/quantized_rows.h"

namespace inlay::test {

// Thirty-two random bits a call.
class Random {
public:
    using result_type = uint32_t;
    explicit Random(uint32_t seed) : engine_(seed) {}
    static constexpr uint32_t min() { return 0; }
    static constexpr uint32_t max() { return UINT32_MAX; }
    uint32_t operator()() { return static_cast<uint32_t>(engine_()); }

private:
    std::mt19937 engine_;
};

inline const TensorType kFloatTypes[] = {TensorType::kF32, TensorType::kF16, TensorType::kBF16};
inline const TensorType kQuantizedTypes[] = {TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ5_0, TensorType::kQ5_1,
                                             TensorType::kQ8_0, TensorType::kQ2_K, TensorType::kQ3_K, TensorType::kQ4_K,
                                             TensorType::kQ5_K, TensorType::kQ6_K};

// Where the f16 values of a block lie.
inline std::vector<size_t> half_offsets(TensorType type) {
    switch (type) {
        case TensorType::kQ4_1:
        case TensorType::kQ5_1:
        case TensorType::kQ4_K:
        case TensorType::kQ5_K:
            return {0, 2};
        case TensorType::kQ2_K:
            return {80, 82};
        case TensorType::kQ3_K:
            return {108};
        case TensorType::kQ6_K:
            return {208};
        default:
            return {0};
    }
}

// A finite f16: mostly of a usual size, at times zero, subnormal or the largest.
inline uint16_t random_half(Random& random) {
    static const uint16_t kSpecial[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x7bff, 0xfbff};
    if (random() % 16 == 0) return kSpecial[random() % 6];
    return static_cast<uint16_t>((random() & 0x8000) | (0x1000 + (random() & 0x1fff)));
}

// Rows as in a GGUF tensor: [n_rows, n_cols] of `type`.
inline std::vector<std::byte> random_rows(TensorType type, size_t n_rows, size_t n_cols, Random& random) {
    std::vector<std::byte> rows(n_rows * row_size(type, n_cols));
    for (auto& byte : rows) byte = static_cast<std::byte>(random());
    if (type == TensorType::kF32 || type == TensorType::kBF16) {
        for (size_t i = 0; i < rows.size(); i += type_size(type)) {
            float value = static_cast<float>(static_cast<int32_t>(random())) * 0x1p-31f;
            const std::byte* bytes = reinterpret_cast<const std::byte*>(&value) + (sizeof value - type_size(type));
            std::memcpy(&rows[i], bytes, type_size(type));
        }
        return rows;
    }
    for (size_t block = 0; block < rows.size(); block += type_size(type)) {
        for (const size_t offset : half_offsets(type)) {
            const uint16_t half = random_half(random);
            std::memcpy(&rows[block + offset], &half, sizeof half);
        }
    }
    return rows;
}

inline std::vector<float> random_floats(size_t n, Random& random) {
    std::vector<float> values(n);
    std::normal_distribution<float> normal;
    for (auto& value : values) value = normal(random);
    return values;
}

// Memory on a boundary of 64 bytes.
class AlignedBytes {
public:
    explicit AlignedBytes(size_t n) : storage_(n + 64) {
        offset_ = 64 - reinterpret_cast<uintptr_t>(storage_.data()) % 64;
    }
    std::byte* data() { return storage_.data() + offset_; }
    const std::byte* data() const { return storage_.data() + offset_; }

private:
    std::vector<std::byte> storage_;
    size_t offset_;
};

struct SampleMatrix {
    SampleMatrix(TensorType type, size_t n_rows, size_t n_cols, Random& random)
        : rows(random_rows(type, n_rows, n_cols, random)),
          packed(n_groups(n_rows) * kernels::packed_group_bytes(type, n_cols)) {
        const size_t bytes = kernels::packed_group_bytes(type, n_cols);
        for (size_t group = 0; group < n_groups(n_rows); ++group) {
            const size_t first = group * kernels::kGroupRows;
            kernels::pack_group(type, rows.data() + first * row_size(type, n_cols),
                                n_rows - first < kernels::kGroupRows ? n_rows - first : kernels::kGroupRows, n_cols,
                                packed.data() + group * bytes);
        }
        matrix = {type, static_cast<uint32_t>(n_rows), static_cast<uint32_t>(n_cols), packed.data()};
    }
    static size_t n_groups(size_t n_rows) { return (n_rows + kernels::kGroupRows - 1) / kernels::kGroupRows; }

    std::vector<std::byte> rows;
    AlignedBytes packed;
    kernels::PackedMatrix matrix;
};

// Equal bits, or both not-a-number.
inline bool same_bits(float a, float b) {
    return std::memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
}

// The first index at which they differ; n if they do not.
inline size_t first_difference(const float* a, const float* b, size_t n) {
    for (size_t i = 0; i < n; ++i)
        if (!same_bits(a[i], b[i])) return i;
    return n;
}

}  // namespace inlay::test
