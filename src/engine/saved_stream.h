// What is saved, as bytes in order: a head, then sections, each with a checksum behind it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/xxhash.h"

#include "base/error.h"

namespace inlay {

class SaveSink {
public:
    virtual ~SaveSink() = default;
    // Called first, with the sum of all that is going to be written: false when that was all it wanted to know.
    virtual bool expects(uint64_t /*n_bytes*/) { return true; }
    // All of them, or throws.
    virtual void write(const void* bytes, size_t n) = 0;
};

class SaveSource {
public:
    virtual ~SaveSource() = default;
    // The next bytes; fewer than `n` only where they end. Throws when they can not be read.
    virtual size_t read(void* bytes, size_t n) = 0;
    // All was read; INLAY_E_FORMAT where the source is known to have more.
    virtual void end() {}
};

// INLAY_E_FORMAT about what was saved.
[[noreturn]] void throw_damaged(const std::string& what);

// Reads all `n` bytes; INLAY_E_FORMAT when there are fewer.
void read_whole(SaveSource& source, void* bytes, size_t n, const char* what);

struct SectionHead {
    uint32_t kind = 0;
    uint32_t reserved = 0;
    uint64_t n_bytes = 0;  // without head and checksum
};

// Of a section with so much content.
constexpr uint64_t section_bytes(uint64_t n_bytes) {
    return sizeof(SectionHead) + n_bytes + sizeof(uint64_t);
}

// One section: write all its bytes, then end.
class SectionWriter {
public:
    SectionWriter(SaveSink& sink, uint32_t kind, uint64_t n_bytes);
    void write(const void* bytes, size_t n);
    void end();

private:
    SaveSink& sink_;
    XXH3_state_t checksum_;
};

void write_section(SaveSink& sink, uint32_t kind, const void* bytes, size_t n);

// One section, in the same way. Nothing that was read is to be relied on before end, which checks it.
class SectionReader {
public:
    // INLAY_E_FORMAT unless it is of this kind.
    SectionReader(SaveSource& source, uint32_t kind, const char* name);
    // Of its content, as it says.
    uint64_t n_bytes() const { return head_.n_bytes; }
    // INLAY_E_FORMAT unless the section has exactly so many bytes.
    void require_bytes(uint64_t n) const;
    void read(void* bytes, size_t n);
    // Appends `n` values; takes memory as they come, since nothing says yet that there are so many.
    template <typename T>
    void read_values(std::vector<T>& values, uint64_t n);
    void end();

private:
    SaveSource& source_;
    const char* name_;
    SectionHead head_;
    XXH3_state_t checksum_;
};

template <typename T>
void SectionReader::read_values(std::vector<T>& values, uint64_t n) {
    constexpr size_t kAtOnce = (size_t{1} << 18) / sizeof(T);
    while (n > 0) {
        const auto n_part = static_cast<size_t>(std::min<uint64_t>(n, kAtOnce));
        const size_t n_before = values.size();
        values.resize(n_before + n_part);
        read(values.data() + n_before, n_part * sizeof(T));
        n -= n_part;
    }
}

}  // namespace inlay
