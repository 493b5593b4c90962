// UTF-8 as the vocabularies see it: decoding that never fails, and the text a vocabulary is asked to encode when the
// bytes are no UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace inlay {

inline constexpr uint32_t kReplacementCharacter = 0xFFFD;

struct CodePoint {
    uint32_t value;   // kReplacementCharacter where the bytes are no code point
    uint32_t length;  // bytes read, at least 1
};

// Reads one code point at `at` (< text.size()). By shape alone: overlong forms and surrogates are read as what they
// spell; a byte that starts nothing whole counts as one replacement character.
CodePoint decode_code_point(std::string_view text, size_t at);

void append_code_point(uint32_t value, std::string& out);

// True for what the Unicode standard calls well-formed.
bool is_valid_utf8(std::string_view text);

// The text with each byte that starts no code point replaced by U+FFFD and overlong forms written short. A vocabulary
// made for UTF-8 has no better way to say these bytes; llama.cpp chooses the same.
std::string repair_utf8(std::string_view text);

}  // namespace inlay
