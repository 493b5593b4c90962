#include "model/gguf_value.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include "model/gguf_reader.h"

namespace inlay {
namespace {

enum class Kind : uint8_t { kUnsigned, kSigned, kFloat, kBool, kOther };

struct TypeFacts {
    std::string_view name;
    Kind kind;
    uint8_t size;
};

// Indexed by the type's number.
constexpr TypeFacts kTypes[] = {
    {"uint8", Kind::kUnsigned, 1}, {"int8", Kind::kSigned, 1},     {"uint16", Kind::kUnsigned, 2},
    {"int16", Kind::kSigned, 2},   {"uint32", Kind::kUnsigned, 4}, {"int32", Kind::kSigned, 4},
    {"float32", Kind::kFloat, 4},  {"bool", Kind::kBool, 1},       {"string", Kind::kOther, 0},
    {"array", Kind::kOther, 0},    {"uint64", Kind::kUnsigned, 8}, {"int64", Kind::kSigned, 8},
    {"float64", Kind::kFloat, 8},
};

constexpr const TypeFacts& facts(GgufValueType type) {
    return kTypes[static_cast<uint8_t>(type)];
}

// The shortest text that reads back as the same number, whatever the locale.
template <typename Number>
std::string number_text(Number value) {
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, value).ptr;
    return {text, end};
}

float float32_value(uint64_t bits) {
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
}

}  // namespace

std::string_view name(GgufValueType type) {
    return facts(type).name;
}
size_t value_size(GgufValueType type) {
    return facts(type).size;
}
bool is_integer(GgufValueType type) {
    return facts(type).kind == Kind::kUnsigned || facts(type).kind == Kind::kSigned;
}
bool is_number(GgufValueType type) {
    return is_integer(type) || facts(type).kind == Kind::kFloat;
}

uint64_t load_scalar(GgufValueType type, const char* bytes) {
    switch (value_size(type)) {
        case 1:
            return load_little<uint8_t>(bytes);
        case 2:
            return load_little<uint16_t>(bytes);
        case 4:
            return load_little<uint32_t>(bytes);
        default:
            return load_little<uint64_t>(bytes);
    }
}

int64_t integer_value(GgufValueType type, uint64_t bits) {
    switch (type) {
        case GgufValueType::kInt8:
            return static_cast<int8_t>(bits);
        case GgufValueType::kInt16:
            return static_cast<int16_t>(bits);
        case GgufValueType::kInt32:
            return static_cast<int32_t>(bits);
        case GgufValueType::kInt64:
            return static_cast<int64_t>(bits);
        default:
            return static_cast<int64_t>(std::min<uint64_t>(bits, INT64_MAX));
    }
}

double number_value(GgufValueType type, uint64_t bits) {
    switch (type) {
        case GgufValueType::kFloat32:
            return double{float32_value(bits)};
        case GgufValueType::kFloat64:
            return std::bit_cast<double>(bits);
        case GgufValueType::kUint64:
            return static_cast<double>(bits);
        default:
            return static_cast<double>(integer_value(type, bits));
    }
}

std::string scalar_text(GgufValueType type, uint64_t bits) {
    switch (type) {
        case GgufValueType::kBool:
            return bits != 0 ? "true" : "false";
        case GgufValueType::kFloat32:
            return number_text(float32_value(bits));
        case GgufValueType::kFloat64:
            return number_text(std::bit_cast<double>(bits));
        case GgufValueType::kUint64:
            return number_text(bits);
        default:
            return number_text(integer_value(type, bits));
    }
}

int64_t GgufIntegers::operator[](size_t i) const {
    return integer_value(type_, load_scalar(type_, bytes_ + i * value_size(type_)));
}

double GgufNumbers::operator[](size_t i) const {
    return number_value(type_, load_scalar(type_, bytes_ + i * value_size(type_)));
}

}  // namespace inlay
