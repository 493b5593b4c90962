// The bytes of a saved session, in order: a head, then sections, each with a checksum behind it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/xxhash.h"

#include "base/error.h"

namespace inlay {

class SaveSink {
public:
    virtual ~SaveSink() = default;
    // All of them, or throws.
    virtual void write(const void* bytes, size_t n) = 0;
};

class SaveSource {
public:
    virtual ~SaveSource() = default;
    // The next bytes; fewer than `n` only where they end. Throws when they can not be read.
    virtual size_t read(void* bytes, size_t n) = 0;
};

// INLAY_E_FORMAT about a saved session.
[[noreturn]] void throw_damaged(const std::string& what);

// Reads all `n` bytes; INLAY_E_FORMAT when there are fewer.
void read_whole(SaveSource& source, void* bytes, size_t n, const char* what);

struct SectionHead {
    uint32_t kind = 0;
    uint32_t reserved = 0;
    uint64_t n_bytes = 0;  // without head and checksum
};

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

// One section, in the same way. Nothing that was read is to be relied on before end, which checks it.
class SectionReader {
public:
    // INLAY_E_FORMAT unless it is of this kind.
    SectionReader(SaveSource& source, uint32_t kind, const char* name);
    // INLAY_E_FORMAT unless the section has exactly so many bytes.
    void require_bytes(uint64_t n) const;
    void read(void* bytes, size_t n);
    void end();

private:
    SaveSource& source_;
    const char* name_;
    SectionHead head_;
    XXH3_state_t checksum_;
};

}  // namespace inlay
