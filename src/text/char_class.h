// What a pre-tokenizer wants to know of a character, as one bit each: its Unicode category, and the few sets of
// characters that published pre-tokenizers name one by one.
#pragma once

#include <cstdint>

namespace inlay {

using CharClasses = uint32_t;

namespace char_class {
inline constexpr CharClasses kLetter = 1u << 0;
inline constexpr CharClasses kMark = 1u << 1;
inline constexpr CharClasses kNumber = 1u << 2;
inline constexpr CharClasses kPunctuation = 1u << 3;
inline constexpr CharClasses kSymbol = 1u << 4;
inline constexpr CharClasses kSpace = 1u << 5;         // White_Space: 25 characters
inline constexpr CharClasses kLineEnd = 1u << 6;       // \r \n
inline constexpr CharClasses kBlank = 1u << 7;         // U+0020 alone
inline constexpr CharClasses kSlash = 1u << 8;         // /
inline constexpr CharClasses kDigit = 1u << 9;         // 0-9
inline constexpr CharClasses kAsciiLower = 1u << 10;   // a-z
inline constexpr CharClasses kAsciiUpper = 1u << 11;   // A-Z
inline constexpr CharClasses kAsciiMark = 1u << 12;    // the 32 printable ASCII characters that are no letter or digit
inline constexpr CharClasses kMathAscii = 1u << 13;    // $ + < = > ^ ~ |
inline constexpr CharClasses kBacktick = 1u << 14;     // `
inline constexpr CharClasses kCasedLetter = 1u << 15;  // deepseek-llm: letters of alphabets with case
inline constexpr CharClasses kWideMark = 1u << 16;     // deepseek-llm: ASCII from ':' on, full-width forms, quotes
inline constexpr CharClasses kAsianLetter = 1u << 17;  // deepseek-llm: U+0800 to U+9FA5 and Hangul
inline constexpr CharClasses kHanKana = 1u << 18;      // deepseek-v3: Han and kana
inline constexpr CharClasses kAny = 1u << 31;          // every character
}  // namespace char_class

// White space outside ASCII belongs to kSpace and kAny only, whatever a named set spans.
CharClasses char_classes(uint32_t code_point);

}  // namespace inlay
