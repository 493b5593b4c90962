// What a host writes to and reads from, as the library's streams: callbacks, or a buffer.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "api/boundary.h"
#include "engine/saved_stream.h"

namespace inlay::api {

class CallbackSink final : public SaveSink {
public:
    CallbackSink(inlay_save_callback callback, void* user) : write_(callback), user_(user) {}

    void write(const void* bytes, size_t n) override {
        if (const int32_t status = write_(user_, bytes, n); status != 0)
            throw Error(INLAY_E_IO, "write returned " + std::to_string(status));
    }

private:
    inlay_save_callback write_;
    void* user_;
};

// The rule for buffers: is filled, or only measures, or refuses before the first byte.
class BufferSink final : public SaveSink {
public:
    BufferSink(void* buffer, size_t capacity) : buffer_(static_cast<std::byte*>(buffer)), capacity_(capacity) {}

    bool expects(uint64_t n_bytes) override {
        n_needed_ = static_cast<size_t>(n_bytes);
        return buffer_ && n_needed_ <= capacity_;
    }
    void write(const void* bytes, size_t n) override {
        if (n > n_needed_ - n_written_) throw Error(INLAY_E_INTERNAL, "more was saved than was announced");
        std::memcpy(buffer_ + n_written_, bytes, n);
        n_written_ += n;
    }
    size_t n_needed() const { return n_needed_; }
    bool is_too_small() const { return buffer_ && n_needed_ > capacity_; }

private:
    std::byte* buffer_;
    size_t capacity_;
    size_t n_needed_ = 0;
    size_t n_written_ = 0;
};

class CallbackSource final : public SaveSource {
public:
    CallbackSource(inlay_load_callback callback, void* user) : read_(callback), user_(user) {}

    size_t read(void* bytes, size_t n) override {
        size_t n_read = 0;
        if (const int32_t status = read_(user_, bytes, n, &n_read); status != 0)
            throw Error(INLAY_E_IO, "read returned " + std::to_string(status));
        if (n_read > n)
            throw Error(INLAY_E_IO, "read gave " + std::to_string(n_read) + " bytes for " + std::to_string(n));
        return n_read;
    }

private:
    inlay_load_callback read_;
    void* user_;
};

class BufferSource final : public SaveSource {
public:
    BufferSource(const void* bytes, size_t size) : bytes_(static_cast<const std::byte*>(bytes)), n_left_(size) {}

    size_t read(void* bytes, size_t n) override {
        n = std::min(n, n_left_);
        if (n != 0) std::memcpy(bytes, bytes_, n);
        bytes_ += n;
        n_left_ -= n;
        return n;
    }
    void end() override {
        if (n_left_ != 0) throw_damaged(std::to_string(n_left_) + " bytes follow it");
    }

private:
    const std::byte* bytes_;
    size_t n_left_;
};

}  // namespace inlay::api
