// Where the bytes of a model come from: a file, memory or a reader of the host's. The parsers above see only this, so a
// format is read the same way from each, at any offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace inlay {

class ByteSource {
public:
    virtual ~ByteSource() = default;

    virtual uint64_t size() const = 0;

    // Fills the whole buffer with the bytes at `offset` or throws INLAY_E_IO.
    virtual void read_at(uint64_t offset, void* buffer, size_t n) const = 0;
    // Whether other threads than the source's maker may call read_at, several at once.
    virtual bool serves_any_thread() const { return true; }
    // The bytes at `offset` where they lie in memory, at any alignment and as long as the source lives; null when they
    // must be read. Throws INLAY_E_IO past the end.
    virtual const std::byte* view(uint64_t offset, size_t n) const;

protected:
    ByteSource() = default;
    ByteSource(const ByteSource&) = default;
    ByteSource& operator=(const ByteSource&) = default;

    // Throws INLAY_E_IO when the bytes pass the end.
    void check_range(uint64_t offset, size_t n) const;
};

// A regular file. Its size is taken once, at opening.
class FileSource final : public ByteSource {
public:
    explicit FileSource(std::string path);  // UTF-8
    ~FileSource() override;
    FileSource(const FileSource&) = delete;
    FileSource& operator=(const FileSource&) = delete;

    uint64_t size() const override { return size_; }
    void read_at(uint64_t offset, void* buffer, size_t n) const override;

    const std::string& path() const { return path_; }
    int descriptor() const { return descriptor_; }

private:
    std::string path_;
    int descriptor_ = -1;
    uint64_t size_ = 0;
};

// Memory that outlives the source.
class MemorySource final : public ByteSource {
public:
    explicit MemorySource(std::span<const std::byte> bytes) : bytes_(bytes) {}
    MemorySource(const void* bytes, size_t n) : bytes_(static_cast<const std::byte*>(bytes), n) {}

    uint64_t size() const override { return bytes_.size(); }
    void read_at(uint64_t offset, void* buffer, size_t n) const override;
    const std::byte* view(uint64_t offset, size_t n) const override;

private:
    std::span<const std::byte> bytes_;
};

}  // namespace inlay
