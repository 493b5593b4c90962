// Byte-level vocabularies write each of the 256 bytes as a printable character, so that their files are text: the
// printable ones of Latin-1 stand for themselves, the other 68 for U+0100 onwards in ascending order (GPT-2's mapping).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace inlay {

// The byte that a character of the alphabet stands for, -1 for any other character.
int32_t byte_of_character(uint32_t code_point);

// Appends the bytes that `text` spells. False, with `out` unchanged, if a character is not of the alphabet.
bool append_spelled_bytes(std::string_view text, std::string& out);

// As above for tokens of real files, which hold such characters now and then: those stand for themselves.
void append_spelled_bytes_or_self(std::string_view text, std::string& out);

}  // namespace inlay
