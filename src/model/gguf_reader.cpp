#include "model/gguf_reader.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/printable.h"

namespace inlay {
namespace {

constexpr size_t kBufferBytes = size_t{64} << 10;
constexpr size_t kNameBytes = 100;  // of a name in a sentence

std::string describe(const GgufField& field) {
    std::string text;
    if (field.owner_kind != nullptr)
        text = std::string(field.owner_kind) + " '" + printable(field.owner, kNameBytes) + "': ";
    text += field.part;
    if (field.index != GgufField::kNoIndex) text += " " + std::to_string(field.index);
    return text;
}

std::string need(uint64_t count, uint64_t bytes_each) {
    if (bytes_each == 1) return std::to_string(count) + " bytes";
    return std::to_string(count) + " times at least " + std::to_string(bytes_each) + " bytes";
}

}  // namespace

void throw_format(const GgufField& field, const std::string& what) {
    throw Error(INLAY_E_FORMAT, describe(field) + " " + what);
}

void throw_unsupported(const GgufField& field, const std::string& what) {
    throw Error(INLAY_E_UNSUPPORTED, describe(field) + " " + what);
}

GgufReader::GgufReader(const ByteSource& source)
    : source_(source),
      file_size_(source.size()),
      end_(std::min(file_size_, kMaxHeadBytes)),
      capacity_(static_cast<size_t>(std::min<uint64_t>(end_, kBufferBytes))),
      buffer_(new uint8_t[capacity_]) {}

void GgufReader::require(uint64_t count, uint64_t bytes_each, const GgufField& field) const {
    const uint64_t left_in_file = file_size_ - position();
    if (count > left_in_file / bytes_each)
        throw_format(field, "needs " + need(count, bytes_each) + " at byte " + std::to_string(position()) +
                                ", but the file ends at byte " + std::to_string(file_size_));
    if (count > (end_ - position()) / bytes_each)
        throw_unsupported(field, "needs " + need(count, bytes_each) + " at byte " + std::to_string(position()) +
                                     "; a head above " + std::to_string(kMaxHeadBytes) + " bytes is not read");
}

void GgufReader::read_bytes(void* out, size_t n, const GgufField& field) {
    require(n, 1, field);
    auto* to = static_cast<uint8_t*>(out);
    while (n > 0) {
        if (buffer_used_ == buffer_size_) fill();
        const size_t piece = std::min(n, buffer_size_ - buffer_used_);
        std::memcpy(to, buffer_.get() + buffer_used_, piece);
        buffer_used_ += piece;
        to += piece;
        n -= piece;
    }
}

void GgufReader::fill() {
    const uint64_t offset = position();
    const size_t n = static_cast<size_t>(std::min<uint64_t>(capacity_, end_ - offset));
    source_.read_at(offset, buffer_.get(), n);
    buffer_offset_ = offset;
    buffer_size_ = n;
    buffer_used_ = 0;
}

}  // namespace inlay
