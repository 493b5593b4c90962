// The head of a GGUF file as a sequence of little-endian fields. Every read says which field it is for and checks what
// is left first, so nothing above can pass the end of the file or take memory for a count that the file cannot hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/byte_source.h"

namespace inlay {

// A number from little-endian bytes of any alignment.
template <typename Unsigned>
Unsigned load_little(const void* bytes) {
    const auto* p = static_cast<const uint8_t*>(bytes);
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(Unsigned); ++i) value |= uint64_t{p[i]} << (8 * i);
    return static_cast<Unsigned>(value);
}

// What is being read, for the sentence if it is wrong: "key 'general.name': element 3", "tensor 'output.weight': type".
struct GgufField {
    static constexpr uint64_t kNoIndex = UINT64_MAX;

    const char* owner_kind;  // "key" or "tensor"; null: the field belongs to the file
    std::string_view owner;
    const char* part;
    uint64_t index = kNoIndex;
};

// Throws INLAY_E_FORMAT: "<field> <what>".
[[noreturn]] void throw_format(const GgufField& field, const std::string& what);
// The same with INLAY_E_UNSUPPORTED, for what may be valid but is not read here.
[[noreturn]] void throw_unsupported(const GgufField& field, const std::string& what);

class GgufReader {
public:
    // A head beyond this is refused: it bounds the memory that a damaged file of many gigabytes can ask for. The
    // largest vocabularies take about 20 MiB.
    static constexpr uint64_t kMaxHeadBytes = uint64_t{512} << 20;

    explicit GgufReader(const ByteSource& source);

    uint64_t file_size() const { return file_size_; }
    uint64_t position() const { return buffer_offset_ + buffer_used_; }

    // Throws unless `count` items of at least `bytes_each` can follow.
    void require(uint64_t count, uint64_t bytes_each, const GgufField& field) const;

    template <typename Unsigned>
    Unsigned read(const GgufField& field) {
        uint8_t bytes[sizeof(Unsigned)];
        read_bytes(bytes, sizeof bytes, field);
        return load_little<Unsigned>(bytes);
    }
    void read_bytes(void* out, size_t n, const GgufField& field);

private:
    void fill();

    const ByteSource& source_;
    uint64_t file_size_;
    uint64_t end_;  // nothing is read at or after this
    size_t capacity_;
    std::unique_ptr<uint8_t[]> buffer_;
    uint64_t buffer_offset_ = 0;  // in the file
    size_t buffer_size_ = 0;
    size_t buffer_used_ = 0;
};

}  // namespace inlay
