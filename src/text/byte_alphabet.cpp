#include "text/byte_alphabet.h"

#include <array>

#include "text/utf8.h"

namespace inlay {

namespace {

constexpr bool stands_for_itself(uint32_t byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr uint32_t kAlphabetEnd = 0x100 + 68;

constexpr std::array<int16_t, kAlphabetEnd> make_bytes() {
    std::array<int16_t, kAlphabetEnd> bytes{};
    for (auto& byte : bytes) byte = -1;
    uint32_t next = 0x100;
    for (uint32_t byte = 0; byte < 256; ++byte) {
        const uint32_t character = stands_for_itself(byte) ? byte : next++;
        bytes[character] = static_cast<int16_t>(byte);
    }
    return bytes;
}

constexpr std::array<int16_t, kAlphabetEnd> kBytes = make_bytes();

}  // namespace

int32_t byte_of_character(uint32_t code_point) {
    return code_point < kAlphabetEnd ? kBytes[code_point] : -1;
}

bool append_spelled_bytes(std::string_view text, std::string& out) {
    const size_t old_size = out.size();
    for (size_t at = 0; at < text.size();) {
        const CodePoint point = decode_code_point(text, at);
        const int32_t byte = byte_of_character(point.value);
        if (byte < 0) {
            out.resize(old_size);
            return false;
        }
        out.push_back(static_cast<char>(byte));
        at += point.length;
    }
    return true;
}

void append_spelled_bytes_or_self(std::string_view text, std::string& out) {
    for (size_t at = 0; at < text.size();) {
        const CodePoint point = decode_code_point(text, at);
        const int32_t byte = byte_of_character(point.value);
        if (byte >= 0) {
            out.push_back(static_cast<char>(byte));
        } else {
            out.append(text.substr(at, point.length));
        }
        at += point.length;
    }
}

}  // namespace inlay
