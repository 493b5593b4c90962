// Splits a GGUF file into parts, as llama.cpp's gguf-split does: all metadata in the first, keys that number the parts
// in each, every tensor in one of them. Sees the file's bytes only, so that tests of the contract can use it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/model/gguf_bytes.h"

namespace inlay::test {

// What a part says about the whole; an empty one is not written.
struct SplitKeys {
    std::optional<uint16_t> number;
    std::optional<uint16_t> count;
    std::optional<int32_t> n_tensors;

    bool operator==(const SplitKeys&) const = default;
};

class GgufParts {
public:
    // `change` may falsify the keys of a part.
    using Change = std::function<void(size_t part, SplitKeys& keys)>;

    explicit GgufParts(const std::string& whole) : whole_(whole) {
        at_ = 8;
        const auto n_tensors = take<uint64_t>();
        n_keys_ = take<uint64_t>();
        const size_t keys_begin = at_;
        for (uint64_t i = 0; i < n_keys_; ++i) {
            take_string();
            skip_value(take<uint32_t>());
        }
        keys_ = whole_.substr(keys_begin, at_ - keys_begin);
        for (uint64_t i = 0; i < n_tensors; ++i) tensors_.push_back(take_tensor());
        place_tensors();
    }

    size_t n_tensors() const { return tensors_.size(); }

    // One more tensor, of 8 values of type F32.
    void add_tensor(const std::string& name) { tensors_.push_back({name, {8}, 0, 0, 32}); }

    // Tensors are dealt in runs of equal length; with `bare_first` the first part has none.
    std::vector<std::string> split(size_t n_parts, const Change& change = {}, bool bare_first = false) const {
        std::vector<std::string> parts;
        const size_t first_filled = bare_first ? 1 : 0;
        const size_t run = (tensors_.size() + n_parts - first_filled - 1) / (n_parts - first_filled);
        for (size_t part = 0; part < n_parts; ++part) {
            SplitKeys keys{static_cast<uint16_t>(part), static_cast<uint16_t>(n_parts),
                           static_cast<int32_t>(tensors_.size())};
            if (change) change(part, keys);
            const size_t begin = part < first_filled ? 0 : std::min(tensors_.size(), (part - first_filled) * run);
            const size_t end = part < first_filled ? 0 : std::min(tensors_.size(), begin + run);
            parts.push_back(write(part == 0, keys, begin, end));
        }
        return parts;
    }

private:
    static constexpr size_t kAlignment = 32;
    static constexpr uint32_t kU16 = 2, kI32 = 5, kString = 8, kArray = 9;

    struct Tensor {
        std::string name;
        std::vector<uint64_t> dims;
        uint32_t type;
        uint64_t offset;  // in the data section, then in the file
        uint64_t bytes;   // up to the next tensor
    };

    template <typename Number>
    Number take() {
        Number value;
        std::memcpy(&value, whole_.data() + at_, sizeof value);
        at_ += sizeof value;
        return value;
    }
    std::string take_string() {
        const auto length = take<uint64_t>();
        at_ += length;
        return whole_.substr(at_ - length, length);
    }
    void skip_value(uint32_t type) {
        constexpr size_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
        if (type == kString) {
            take_string();
        } else if (type == kArray) {
            const auto element = take<uint32_t>();
            for (auto left = take<uint64_t>(); left > 0; --left) skip_value(element);
        } else {
            at_ += kSizes[type];
        }
    }
    Tensor take_tensor() {
        Tensor tensor;
        tensor.name = take_string();
        tensor.dims.resize(take<uint32_t>());
        for (uint64_t& dim : tensor.dims) dim = take<uint64_t>();
        tensor.type = take<uint32_t>();
        tensor.offset = take<uint64_t>();
        tensor.bytes = 0;
        return tensor;
    }
    // The file's tensors lie one after the other.
    void place_tensors() {
        const size_t data = (at_ + kAlignment - 1) / kAlignment * kAlignment;
        for (size_t i = 0; i < tensors_.size(); ++i) {
            tensors_[i].offset += data;
            if (i > 0) tensors_[i - 1].bytes = tensors_[i].offset - tensors_[i - 1].offset;
        }
        if (!tensors_.empty()) tensors_.back().bytes = whole_.size() - tensors_.back().offset;
    }

    std::string write(bool first, const SplitKeys& keys, size_t begin, size_t end) const {
        const size_t n_split_keys = keys.number.has_value() + keys.count.has_value() + keys.n_tensors.has_value();
        GgufBytes bytes;
        bytes.head(end - begin, n_split_keys + (first ? n_keys_ : 0));
        if (first) bytes.raw(keys_);
        if (keys.number) bytes.key("split.no", kU16).u16(*keys.number);
        if (keys.count) bytes.key("split.count", kU16).u16(*keys.count);
        if (keys.n_tensors) bytes.key("split.tensors.count", kI32).u32(static_cast<uint32_t>(*keys.n_tensors));
        uint64_t offset = 0;
        for (size_t i = begin; i < end; ++i) {
            const Tensor& tensor = tensors_[i];
            bytes.string(tensor.name).u32(static_cast<uint32_t>(tensor.dims.size()));
            for (uint64_t dim : tensor.dims) bytes.u64(dim);
            bytes.u32(tensor.type).u64(offset);
            offset += (tensor.bytes + kAlignment - 1) / kAlignment * kAlignment;
        }
        for (size_t i = begin; i < end; ++i)
            bytes.data(0, kAlignment).raw(std::string_view(whole_).substr(tensors_[i].offset, tensors_[i].bytes));
        return bytes.bytes();
    }

    std::string whole_;
    size_t at_ = 0;
    uint64_t n_keys_ = 0;
    std::string keys_;
    std::vector<Tensor> tensors_;
};

}  // namespace inlay::test
