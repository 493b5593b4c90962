// Reads an architecture's numbers from a GGUF file, "<architecture>.<name>", with their ranges checked, so that what a
// ModelSpec is made of can be trusted by everything below.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/gguf.h"
#include "model/model_spec.h"

namespace inlay {

class Hyperparameters {
public:
    Hyperparameters(const GgufFile& file, std::string_view architecture) : file_(file), prefix_(architecture) {}

    // Throws INLAY_E_FORMAT naming the key when it is absent or outside the range.
    uint32_t count(std::string_view name, uint32_t at_least, uint32_t at_most) const;
    std::optional<uint32_t> optional_count(std::string_view name, uint32_t at_least, uint32_t at_most) const;
    double number(std::string_view name, double above, double at_most) const;
    std::optional<double> optional_number(std::string_view name, double above, double at_most) const;
    std::optional<std::string_view> string(std::string_view name) const { return file_.string(key(name)); }

    std::string key(std::string_view name) const { return prefix_ + "." + std::string(name); }

private:
    const GgufFile& file_;
    std::string prefix_;
};

// The tensors of a file by name, with their shapes checked against what the spec says.
class TensorNames {
public:
    explicit TensorNames(const GgufFile& file) : file_(file) {}

    // Index into file.tensors(). Shape in GGUF's order: inner dimension first. A vector has n_rows 1.
    uint32_t required(const std::string& name, uint64_t n_cols, uint64_t n_rows) const;
    uint32_t optional(const std::string& name, uint64_t n_cols, uint64_t n_rows) const;  // kNoTensor when absent

private:
    const GgufFile& file_;
};

}  // namespace inlay
