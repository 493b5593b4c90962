// Many short byte strings, addressed by number, in one buffer: a vocabulary of 250,000 tokens is two allocations. Less
// than 4 GiB in all: a vocabulary comes from the head of a file, which is at most 512 MiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace inlay {

class StringTable {
public:
    void reserve(size_t n_strings, size_t n_bytes) {
        ends_.reserve(n_strings);
        bytes_.reserve(n_bytes);
    }
    void push_back(std::string_view text) {
        bytes_.append(text);
        ends_.push_back(static_cast<uint32_t>(bytes_.size()));
    }
    size_t size() const { return ends_.size(); }
    bool empty() const { return ends_.empty(); }
    size_t n_bytes() const { return bytes_.size(); }
    size_t memory_bytes() const { return bytes_.capacity() + ends_.capacity() * sizeof(uint32_t); }
    std::string_view operator[](size_t index) const {
        const size_t begin = index == 0 ? 0 : ends_[index - 1];
        return std::string_view(bytes_).substr(begin, ends_[index] - begin);
    }

private:
    std::string bytes_;
    std::vector<uint32_t> ends_;
};

}  // namespace inlay
