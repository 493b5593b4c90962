// The element types a GGUF tensor can have, with their numbers in the file. A quantised type stores its values in
// blocks of a fixed number of values and bytes; an unquantised one is a block of one value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace inlay {

enum class TensorType : uint32_t {
    kF32 = 0,
    kF16 = 1,
    kQ4_0 = 2,
    kQ4_1 = 3,
    kQ5_0 = 6,
    kQ5_1 = 7,
    kQ8_0 = 8,
    kQ8_1 = 9,
    kQ2_K = 10,
    kQ3_K = 11,
    kQ4_K = 12,
    kQ5_K = 13,
    kQ6_K = 14,
    kQ8_K = 15,
    kIQ2_XXS = 16,
    kIQ2_XS = 17,
    kIQ3_XXS = 18,
    kIQ1_S = 19,
    kIQ4_NL = 20,
    kIQ3_S = 21,
    kIQ2_S = 22,
    kIQ4_XS = 23,
    kI8 = 24,
    kI16 = 25,
    kI32 = 26,
    kI64 = 27,
    kF64 = 28,
    kIQ1_M = 29,
    kBF16 = 30,
    kTQ1_0 = 34,
    kTQ2_0 = 35,
    kMXFP4 = 39,
    kNVFP4 = 40,
    kQ1_0 = 41,
    kQ2_0 = 42,
};

// The type with this number in a file; nothing if the number is unknown or was withdrawn.
std::optional<TensorType> tensor_type_from_id(uint32_t id);

std::string_view name(TensorType type);
size_t block_size(TensorType type);  // values in a block
size_t type_size(TensorType type);   // bytes in a block
bool is_quantized(TensorType type);  // more than one value in a block

// Bytes of `n_values` values, a multiple of the block size.
inline size_t row_size(TensorType type, size_t n_values) {
    return n_values / block_size(type) * type_size(type);
}

}  // namespace inlay
