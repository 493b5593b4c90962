// A GGUF model file: what its head says about the model and where each tensor lies. Reading it checks everything the
// file claims and touches no tensor data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"
#include "base/tensor_info.h"
#include "model/gguf_metadata.h"

namespace inlay {

class GgufFile {
public:
    // Versions 2 and 3, little-endian. INLAY_E_FORMAT for a file that is cut or lies, INLAY_E_UNSUPPORTED for what may
    // be right but is not read here; the sentence names the field.
    static GgufFile read(const ByteSource& source);

    // The parts of a split model as one file: the first part's metadata and everyone's tensors. Part i begins at byte
    // begins[i] of the whole, and a tensor's offset is one into that. INLAY_E_FORMAT when a tensor is in two parts.
    static GgufFile join(std::vector<GgufFile> parts, std::span<const uint64_t> begins);

    uint32_t version() const { return version_; }
    uint64_t alignment() const { return alignment_; }
    uint64_t data_offset() const { return data_offset_; }  // where tensor data begins in the (first) file

    // In the order of the file; part after part.
    const std::vector<TensorInfo>& tensors() const { return tensors_; }
    const TensorInfo* find_tensor(std::string_view name) const;  // null if there is none

    const GgufMetadata& metadata() const { return metadata_; }

    // See GgufMetadata.
    std::optional<uint64_t> unsigned_integer(std::string_view key) const { return metadata_.unsigned_integer(key); }
    std::optional<int64_t> integer(std::string_view key) const { return metadata_.integer(key); }
    std::optional<double> number(std::string_view key) const { return metadata_.number(key); }
    std::optional<bool> boolean(std::string_view key) const { return metadata_.boolean(key); }
    std::optional<std::string_view> string(std::string_view key) const { return metadata_.string(key); }
    std::optional<GgufIntegers> integers(std::string_view key) const { return metadata_.integers(key); }
    std::optional<GgufNumbers> numbers(std::string_view key) const { return metadata_.numbers(key); }
    std::optional<GgufStrings> strings(std::string_view key) const { return metadata_.strings(key); }

private:
    uint32_t version_ = 0;
    uint64_t alignment_ = 0;
    uint64_t data_offset_ = 0;
    GgufMetadata metadata_;
    std::vector<TensorInfo> tensors_;
    std::vector<uint32_t> by_name_;  // tensors in ascending order of their names
};

}  // namespace inlay
