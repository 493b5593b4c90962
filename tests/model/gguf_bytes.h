// Writes GGUF heads field by field, right or wrong, for tests of what reads them.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace inlay::test {

class GgufBytes {
public:
    template <typename Unsigned>
    GgufBytes& number(Unsigned value) {
        for (size_t i = 0; i < sizeof(Unsigned); ++i)
            bytes_ += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
        return *this;
    }
    GgufBytes& u8(uint8_t value) { return number(value); }
    GgufBytes& u16(uint16_t value) { return number(value); }
    GgufBytes& u32(uint32_t value) { return number(value); }
    GgufBytes& u64(uint64_t value) { return number(value); }
    GgufBytes& f32(float value) { return number(std::bit_cast<uint32_t>(value)); }
    GgufBytes& f64(double value) { return number(std::bit_cast<uint64_t>(value)); }
    GgufBytes& raw(std::string_view bytes) {
        bytes_ += bytes;
        return *this;
    }
    GgufBytes& string(std::string_view text) { return u64(text.size()).raw(text); }

    GgufBytes& head(uint64_t n_tensors, uint64_t n_keys, uint32_t version = 3) {
        return raw("GGUF").u32(version).u64(n_tensors).u64(n_keys);
    }
    // A key and the number of its type; the value follows.
    GgufBytes& key(std::string_view name, uint32_t type) { return string(name).u32(type); }
    GgufBytes& array(std::string_view name, uint32_t element_type, uint64_t count) {
        return key(name, 9).u32(element_type).u64(count);
    }
    GgufBytes& tensor(std::string_view name, uint32_t type, uint64_t dim, uint64_t offset) {
        return string(name).u32(1).u64(dim).u32(type).u64(offset);
    }
    // Zeros up to the next multiple, then `n` more.
    GgufBytes& data(size_t n, size_t alignment = 32) {
        bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment + n);
        return *this;
    }

    const std::string& bytes() const { return bytes_; }

private:
    std::string bytes_;
};

}  // namespace inlay::test
