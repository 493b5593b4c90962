#include "base/tensor_type.h"

#include <iterator>

namespace inlay {
namespace {

struct TypeFacts {
    std::string_view name;  // empty: no such type
    size_t block_size, type_size;
};

constexpr TypeFacts kNoType{{}, 0, 0};

// Indexed by the type's number. Sizes are spelled as the sum of a block's fields: scales, then packed values.
constexpr TypeFacts kTypes[] = {
    {"F32", 1, 4},
    {"F16", 1, 2},
    {"Q4_0", 32, 2 + 16},
    {"Q4_1", 32, 2 + 2 + 16},
    kNoType,
    kNoType,
    {"Q5_0", 32, 2 + 4 + 16},
    {"Q5_1", 32, 2 + 2 + 4 + 16},
    {"Q8_0", 32, 2 + 32},
    {"Q8_1", 32, 2 + 2 + 32},
    {"Q2_K", 256, 16 + 64 + 2 + 2},
    {"Q3_K", 256, 32 + 64 + 12 + 2},
    {"Q4_K", 256, 2 + 2 + 12 + 128},
    {"Q5_K", 256, 2 + 2 + 12 + 32 + 128},
    {"Q6_K", 256, 128 + 64 + 16 + 2},
    {"Q8_K", 256, 4 + 256 + 32},
    {"IQ2_XXS", 256, 2 + 64},
    {"IQ2_XS", 256, 2 + 64 + 8},
    {"IQ3_XXS", 256, 2 + 64 + 32},
    {"IQ1_S", 256, 2 + 32 + 16},
    {"IQ4_NL", 32, 2 + 16},
    {"IQ3_S", 256, 2 + 64 + 8 + 32 + 4},
    {"IQ2_S", 256, 2 + 64 + 8 + 8},
    {"IQ4_XS", 256, 2 + 2 + 4 + 128},
    {"I8", 1, 1},
    {"I16", 1, 2},
    {"I32", 1, 4},
    {"I64", 1, 8},
    {"F64", 1, 8},
    {"IQ1_M", 256, 32 + 16 + 8},
    {"BF16", 1, 2},
    kNoType,
    kNoType,
    kNoType,
    {"TQ1_0", 256, 48 + 4 + 2},
    {"TQ2_0", 256, 64 + 2},
    kNoType,
    kNoType,
    kNoType,
    {"MXFP4", 32, 1 + 16},
    {"NVFP4", 64, 4 + 32},
    {"Q1_0", 128, 2 + 16},
    {"Q2_0", 64, 2 + 16},
};

constexpr const TypeFacts& facts(TensorType type) {
    return kTypes[static_cast<uint32_t>(type)];
}

static_assert(facts(TensorType::kQ6_K).name == "Q6_K" && facts(TensorType::kIQ4_XS).name == "IQ4_XS" &&
              facts(TensorType::kBF16).name == "BF16" && facts(TensorType::kTQ2_0).name == "TQ2_0" &&
              facts(TensorType::kQ2_0).name == "Q2_0");

}  // namespace

std::optional<TensorType> tensor_type_from_id(uint32_t id) {
    if (id >= std::size(kTypes) || kTypes[id].name.empty()) return std::nullopt;
    return static_cast<TensorType>(id);
}

std::string_view name(TensorType type) {
    return facts(type).name;
}
size_t block_size(TensorType type) {
    return facts(type).block_size;
}
size_t type_size(TensorType type) {
    return facts(type).type_size;
}
bool is_quantized(TensorType type) {
    return facts(type).block_size > 1;
}

}  // namespace inlay
