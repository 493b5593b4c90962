// Several sources end to end, as if they were one: the parts of a split model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/byte_source.h"

namespace inlay {

class JoinedSource final : public ByteSource {
public:
    // INLAY_E_UNSUPPORTED when all together are longer than offsets can say.
    explicit JoinedSource(std::vector<std::shared_ptr<const ByteSource>> parts);

    // Where a part begins.
    uint64_t begin_of(size_t part) const { return begins_[part]; }

    uint64_t size() const override { return begins_.back(); }
    void read_at(uint64_t offset, void* buffer, size_t n) const override;
    bool serves_any_thread() const override;
    // Null also when the bytes lie in two parts.
    const std::byte* view(uint64_t offset, size_t n) const override;

private:
    size_t part_at(uint64_t offset) const;

    std::vector<std::shared_ptr<const ByteSource>> parts_;
    std::vector<uint64_t> begins_;  // [parts + 1]
};

}  // namespace inlay
