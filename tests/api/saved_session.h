// Sessions saved to bytes and loaded from them.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "model_path.h"
#include "saved_bytes.h"

namespace inlay::test {

inline std::string saved(inlay_session* session) {
    std::string bytes;
    const inlay_save_callback write = [](void* user, const void* data, size_t size) -> int32_t {
        static_cast<std::string*>(user)->append(static_cast<const char*>(data), size);
        return 0;
    };
    REQUIRE(inlay_session_save(session, write, &bytes, nullptr) == INLAY_OK);
    return bytes;
}

struct ByteReader {
    const std::string& bytes;
    size_t at = 0;

    static int32_t read(void* user, void* buffer, size_t size, size_t* n_read) {
        auto& reader = *static_cast<ByteReader*>(user);
        *n_read = std::min(size, reader.bytes.size() - reader.at);
        std::memcpy(buffer, reader.bytes.data() + reader.at, *n_read);
        reader.at += *n_read;
        return 0;
    }
};

inline inlay_load_result empty_result() {
    inlay_load_result result{};
    result.struct_size = sizeof result;
    return result;
}

inline Outcome load(inlay_session* session, const std::string& bytes, uint32_t flags = 0,
                    inlay_load_result* result = nullptr) {
    ByteReader reader{bytes};
    return outcome_of([&](inlay_error** error) {
        return inlay_session_load(session, flags, ByteReader::read, &reader, result, error);
    });
}

}  // namespace inlay::test
