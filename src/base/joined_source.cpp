#include "base/joined_source.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace inlay {
namespace {

constexpr uint64_t kMaxBytes = INT64_MAX;  // what file offsets can express

}  // namespace

JoinedSource::JoinedSource(std::vector<std::shared_ptr<const ByteSource>> parts) : parts_(std::move(parts)) {
    begins_.push_back(0);
    for (const auto& part : parts_) {
        if (part->size() > kMaxBytes - begins_.back())
            throw Error(INLAY_E_UNSUPPORTED, "the parts of the model have more than 2^63 bytes together");
        begins_.push_back(begins_.back() + part->size());
    }
}

// The last part that begins at or before the offset: an empty part holds nothing.
size_t JoinedSource::part_at(uint64_t offset) const {
    const auto behind = std::upper_bound(begins_.begin(), begins_.end() - 1, offset);
    return static_cast<size_t>(behind - begins_.begin()) - 1;
}

void JoinedSource::read_at(uint64_t offset, void* buffer, size_t n) const {
    check_range(offset, n);
    auto* out = static_cast<std::byte*>(buffer);
    while (n > 0) {
        const size_t part = part_at(offset);
        const size_t piece = static_cast<size_t>(std::min<uint64_t>(n, begins_[part + 1] - offset));
        parts_[part]->read_at(offset - begins_[part], out, piece);
        out += piece;
        offset += piece;
        n -= piece;
    }
}

bool JoinedSource::serves_any_thread() const {
    return std::all_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->serves_any_thread(); });
}

const std::byte* JoinedSource::view(uint64_t offset, size_t n) const {
    check_range(offset, n);
    if (parts_.empty()) return nullptr;
    const size_t part = part_at(offset);
    if (n > begins_[part + 1] - offset) return nullptr;
    return parts_[part]->view(offset - begins_[part], n);
}

}  // namespace inlay
