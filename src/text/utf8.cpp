#include "text/utf8.h"

namespace inlay {

namespace {

constexpr uint32_t kLastCodePoint = 0x10FFFF;

bool is_continuation(char c) {
    return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// Length that the first byte announces, 0 if it announces none.
uint32_t announced_length(unsigned char first) {
    if (first < 0x80) return 1;
    if (first < 0xC0) return 0;
    if (first < 0xE0) return 2;
    if (first < 0xF0) return 3;
    return first < 0xF8 ? 4 : 0;
}

uint32_t shortest_length(uint32_t value) {
    if (value < 0x80) return 1;
    if (value < 0x800) return 2;
    return value < 0x10000 ? 3 : 4;
}

}  // namespace

CodePoint decode_code_point(std::string_view text, size_t at) {
    const auto first = static_cast<unsigned char>(text[at]);
    if (first < 0x80) return {first, 1};
    const uint32_t length = announced_length(first);
    if (length == 0 || text.size() - at < length) return {kReplacementCharacter, 1};
    uint32_t value = first & (0x7Fu >> length);
    for (uint32_t i = 1; i < length; ++i) {
        const char next = text[at + i];
        if (!is_continuation(next)) return {kReplacementCharacter, 1};
        value = (value << 6) | (static_cast<unsigned char>(next) & 0x3Fu);
    }
    if (value > kLastCodePoint) return {kReplacementCharacter, 1};
    return {value, length};
}

void append_code_point(uint32_t value, std::string& out) {
    const uint32_t length = shortest_length(value);
    if (length == 1) {
        out.push_back(static_cast<char>(value));
        return;
    }
    constexpr uint32_t kLead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    out.push_back(static_cast<char>(kLead[length] | (value >> (6 * (length - 1)))));
    for (uint32_t i = length - 1; i-- > 0;) out.push_back(static_cast<char>(0x80 | ((value >> (6 * i)) & 0x3F)));
}

bool is_valid_utf8(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
        const CodePoint point = decode_code_point(text, at);
        if (point.length != shortest_length(point.value)) return false;    // broken (1 for U+FFFD) or overlong
        if (point.value >= 0xD800 && point.value <= 0xDFFF) return false;  // surrogate
        at += point.length;
    }
    return true;
}

std::string repair_utf8(std::string_view text) {
    std::string repaired;
    repaired.reserve(text.size() + text.size() / 2);
    for (size_t at = 0; at < text.size();) {
        const CodePoint point = decode_code_point(text, at);
        append_code_point(point.value, repaired);
        at += point.length;
    }
    return repaired;
}

}  // namespace inlay
