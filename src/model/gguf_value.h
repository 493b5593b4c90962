// The values that GGUF metadata is made of: their types, their conversion from the bits in the file, their text, and
// views of arrays of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace inlay {

// Value types with their numbers in the file.
enum class GgufValueType : uint8_t {
    kUint8 = 0,
    kInt8 = 1,
    kUint16 = 2,
    kInt16 = 3,
    kUint32 = 4,
    kInt32 = 5,
    kFloat32 = 6,
    kBool = 7,
    kString = 8,
    kArray = 9,
    kUint64 = 10,
    kInt64 = 11,
    kFloat64 = 12,
};

std::string_view name(GgufValueType type);

size_t value_size(GgufValueType type);  // bytes of a scalar; 0 for strings and arrays
bool is_integer(GgufValueType type);
bool is_number(GgufValueType type);  // integer or float

// A scalar's bits, widened with zeros, as the functions below take them.
uint64_t load_scalar(GgufValueType type, const char* bytes);

// The value of an integer or a bool; a uint64 above the largest int64 gives that.
int64_t integer_value(GgufValueType type, uint64_t bits);
double number_value(GgufValueType type, uint64_t bits);
std::string scalar_text(GgufValueType type, uint64_t bits);

// Views of arrays; they live as long as the metadata.
class GgufIntegers {
public:
    GgufIntegers(GgufValueType type, const char* bytes, size_t size) : type_(type), bytes_(bytes), size_(size) {}
    size_t size() const { return size_; }
    int64_t operator[](size_t i) const;

private:
    GgufValueType type_;
    const char* bytes_;
    size_t size_;
};

class GgufNumbers {
public:
    GgufNumbers(GgufValueType type, const char* bytes, size_t size) : type_(type), bytes_(bytes), size_(size) {}
    size_t size() const { return size_; }
    double operator[](size_t i) const;

private:
    GgufValueType type_;
    const char* bytes_;
    size_t size_;
};

class GgufStrings {
public:
    GgufStrings(const char* bytes, const uint64_t* bounds, size_t size) : bytes_(bytes), bounds_(bounds), size_(size) {}
    size_t size() const { return size_; }
    std::string_view operator[](size_t i) const {
        return {bytes_ + bounds_[i], static_cast<size_t>(bounds_[i + 1] - bounds_[i])};
    }

private:
    const char* bytes_;
    const uint64_t* bounds_;  // [size + 1] into bytes: string i lies between bounds i and i + 1
    size_t size_;
};

// "[a, b, c, ... 1000 in all]": elements until `max_bytes` are passed.
template <typename ElementText>
std::string array_text(size_t count, const ElementText& element_text, size_t max_bytes) {
    std::string text = "[";
    for (size_t i = 0; i < count; ++i) {
        if (i > 0) text += ", ";
        if (text.size() > max_bytes) return text + "... " + std::to_string(count) + " in all]";
        text += element_text(i);
    }
    return text + "]";
}

}  // namespace inlay
