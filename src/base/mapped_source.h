// A regular file that is mapped instead of read. Whoever truncates it meanwhile ends the process by a signal, as with
// any mapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/byte_source.h"

namespace inlay {

class MappedSource final : public ByteSource {
public:
    explicit MappedSource(std::string path);  // UTF-8
    ~MappedSource() override;
    MappedSource(const MappedSource&) = delete;
    MappedSource& operator=(const MappedSource&) = delete;

    uint64_t size() const override { return file_.size(); }
    void read_at(uint64_t offset, void* buffer, size_t n) const override;
    const std::byte* view(uint64_t offset, size_t n) const override;

private:
    FileSource file_;
    const std::byte* bytes_ = nullptr;
};

}  // namespace inlay
