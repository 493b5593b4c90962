#include "model/gguf_split.h"

#include "base/error.h"
#include "model/gguf_reader.h"

namespace inlay {
namespace {

constexpr const char* kNumber = "split.no";
constexpr const char* kCount = "split.count";
constexpr const char* kTensorCount = "split.tensors.count";
constexpr uint64_t kMaxParts = 65535;  // the usual type of the keys has 16 bits

GgufField value_of(std::string_view key) {
    return {"key", key, "value"};
}

std::string five_digits(uint32_t number) {
    const std::string digits = std::to_string(number);
    return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
}

std::string name_ending(uint32_t index, uint32_t n_parts) {
    return "-" + five_digits(index + 1) + "-of-" + five_digits(n_parts) + ".gguf";
}

}  // namespace

uint32_t n_parts_of(const GgufFile& first) {
    const uint64_t count = first.unsigned_integer(kCount).value_or(0);
    if (count <= 1) return 1;  // 0: what joining the parts of a split model writes
    if (count > kMaxParts)
        throw_format(value_of(kCount),
                     "is " + std::to_string(count) + "; a model has at most " + std::to_string(kMaxParts) + " parts");
    const uint64_t number = first.unsigned_integer(kNumber).value_or(0);
    if (number >= count)
        throw_format(value_of(kNumber),
                     "is " + std::to_string(number) + " of " + std::to_string(count) + " parts, counted from 0");
    if (number != 0)
        throw Error(INLAY_E_INVALID_ARGUMENT, "this is part " + std::to_string(number + 1) + " of " +
                                                  std::to_string(count) + " (key '" + kNumber +
                                                  "'): a split model is opened by its first part");
    return static_cast<uint32_t>(count);
}

void check_part(const GgufFile& part, uint32_t index, uint32_t n_parts) {
    const std::optional<uint64_t> number = part.unsigned_integer(kNumber);
    if (!number) throw_format({"key", kNumber, "the key"}, "is missing");
    if (*number != index)
        throw_format(value_of(kNumber),
                     "is " + std::to_string(*number) + "; " + std::to_string(index) + " belongs here");
    const uint64_t count = part.unsigned_integer(kCount).value_or(n_parts);
    if (count != n_parts)
        throw_format(value_of(kCount),
                     "is " + std::to_string(count) + " and " + std::to_string(n_parts) + " in the first part");
}

void check_tensor_count(const GgufFile& whole) {
    const std::optional<uint64_t> count = whole.unsigned_integer(kTensorCount);
    if (!count) throw_format({"key", kTensorCount, "the key"}, "is missing");
    if (*count != whole.tensors().size())
        throw_format(value_of(kTensorCount), "is " + std::to_string(*count) + "; the parts have " +
                                                 std::to_string(whole.tensors().size()) + " tensors together");
}

std::optional<std::string> split_path(std::string_view first_path, uint32_t index, uint32_t n_parts) {
    const std::string ending = name_ending(0, n_parts);
    if (!first_path.ends_with(ending)) return std::nullopt;
    return std::string(first_path.substr(0, first_path.size() - ending.size())) + name_ending(index, n_parts);
}

}  // namespace inlay
