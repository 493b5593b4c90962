#include "text/char_class.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace inlay {

namespace {

using namespace char_class;

struct Range {
    uint32_t first;
    uint32_t last;
};

// Sorted, for binary search.
constexpr Range kCasedLetters[] = {
    {0x0041, 0x005a},   {0x0061, 0x007a},   {0x00b5, 0x00b5},   {0x00c0, 0x00d6},   {0x00d8, 0x00f6},
    {0x00f8, 0x01ba},   {0x01bc, 0x01bf},   {0x01c4, 0x0293},   {0x0295, 0x02af},   {0x0370, 0x0373},
    {0x0376, 0x0377},   {0x037b, 0x037d},   {0x037f, 0x037f},   {0x0386, 0x0386},   {0x0388, 0x038a},
    {0x038c, 0x038c},   {0x038e, 0x03a1},   {0x03a3, 0x03f5},   {0x03f7, 0x0481},   {0x048a, 0x052f},
    {0x0531, 0x0556},   {0x10a0, 0x10c5},   {0x13a0, 0x13f5},   {0x13f8, 0x13fd},   {0x1c90, 0x1cba},
    {0x1cbd, 0x1cbf},   {0x1d00, 0x1d2b},   {0x1d6b, 0x1d77},   {0x1d79, 0x1d9a},   {0x1e00, 0x1f15},
    {0x1f18, 0x1f1d},   {0x1f20, 0x1f45},   {0x1f48, 0x1f4d},   {0x1f50, 0x1f57},   {0x1f59, 0x1f59},
    {0x1f5b, 0x1f5b},   {0x1f5d, 0x1f5d},   {0x1f5f, 0x1f7d},   {0x1f80, 0x1fb4},   {0x1fb6, 0x1fbc},
    {0x1fbe, 0x1fbe},   {0x1fc2, 0x1fc4},   {0x1fc6, 0x1fcc},   {0x1fd0, 0x1fd3},   {0x1fd6, 0x1fdb},
    {0x1fe0, 0x1fec},   {0x1ff2, 0x1ff4},   {0x1ff6, 0x1ffc},   {0x2102, 0x2102},   {0x2107, 0x2107},
    {0x210a, 0x2113},   {0x2115, 0x2115},   {0x2119, 0x211d},   {0x2124, 0x2124},   {0x2126, 0x2126},
    {0x2128, 0x2128},   {0x212a, 0x212d},   {0x212f, 0x2134},   {0x2139, 0x2139},   {0x213c, 0x213f},
    {0x2145, 0x2149},   {0x214e, 0x214e},   {0x2183, 0x2184},   {0x2c00, 0x2c7b},   {0x2c7e, 0x2ce4},
    {0x2ceb, 0x2cee},   {0x2cf2, 0x2cf3},   {0xa640, 0xa66d},   {0xa680, 0xa69b},   {0xa722, 0xa76f},
    {0xa771, 0xa787},   {0xa78b, 0xa78e},   {0xab70, 0xabbf},   {0xfb00, 0xfb06},   {0xfb13, 0xfb17},
    {0xff21, 0xff3a},   {0xff41, 0xff5a},   {0x10400, 0x1044f}, {0x104b0, 0x104d3}, {0x104d8, 0x104fb},
    {0x10c80, 0x10cb2}, {0x10cc0, 0x10cf2}, {0x118a0, 0x118df}, {0x1e900, 0x1e943}};
constexpr Range kWideMarks[] = {{0x0021, 0x002f}, {0x003a, 0x007e}, {0x2018, 0x201f},
                                {0x3000, 0x3002}, {0xff01, 0xff0f}, {0xff1a, 0xff5e}};
constexpr Range kAsianLetters[] = {{0x0800, 0x9fa5}, {0xac00, 0xd7ff}};
constexpr Range kHanKanas[] = {{0x3040, 0x30ff}, {0x4e00, 0x9fa5}};

// White_Space outside ASCII, as the Unicode property list has it since 6.3.
constexpr Range kWideSpaces[] = {{0x0085, 0x0085}, {0x00a0, 0x00a0}, {0x1680, 0x1680}, {0x2000, 0x200a},
                                 {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}};

// Characters that Unicode 15.1 added; the pre-tokenizers' authors know them, a utf8proc of Unicode 15.0 does not.
constexpr Range kNewLetters[] = {{0x2ebf0, 0x2ee5d}};
constexpr Range kNewSymbols[] = {{0x2ffc, 0x2fff}, {0x31ef, 0x31ef}};

template <size_t n>
constexpr bool is_in(const Range (&ranges)[n], uint32_t code_point) {
    const Range* after = std::upper_bound(std::begin(ranges), std::end(ranges), code_point,
                                          [](uint32_t value, const Range& range) { return value < range.first; });
    return after != std::begin(ranges) && code_point <= std::prev(after)->last;
}

CharClasses category_class(uint32_t code_point) {
    switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
        case UTF8PROC_CATEGORY_LU:
        case UTF8PROC_CATEGORY_LL:
        case UTF8PROC_CATEGORY_LT:
        case UTF8PROC_CATEGORY_LM:
        case UTF8PROC_CATEGORY_LO:
            return kLetter;
        case UTF8PROC_CATEGORY_MN:
        case UTF8PROC_CATEGORY_MC:
        case UTF8PROC_CATEGORY_ME:
            return kMark;
        case UTF8PROC_CATEGORY_ND:
        case UTF8PROC_CATEGORY_NL:
        case UTF8PROC_CATEGORY_NO:
            return kNumber;
        case UTF8PROC_CATEGORY_PC:
        case UTF8PROC_CATEGORY_PD:
        case UTF8PROC_CATEGORY_PS:
        case UTF8PROC_CATEGORY_PE:
        case UTF8PROC_CATEGORY_PI:
        case UTF8PROC_CATEGORY_PF:
        case UTF8PROC_CATEGORY_PO:
            return kPunctuation;
        case UTF8PROC_CATEGORY_SM:
        case UTF8PROC_CATEGORY_SC:
        case UTF8PROC_CATEGORY_SK:
        case UTF8PROC_CATEGORY_SO:
            return kSymbol;
        case UTF8PROC_CATEGORY_CN:
            return is_in(kNewLetters, code_point) ? kLetter : is_in(kNewSymbols, code_point) ? kSymbol : 0;
        default:
            return 0;
    }
}

constexpr CharClasses named_sets(uint32_t code_point) {
    CharClasses classes = kAny;
    if (is_in(kCasedLetters, code_point)) classes |= kCasedLetter;
    if (is_in(kWideMarks, code_point)) classes |= kWideMark;
    if (is_in(kAsianLetters, code_point)) classes |= kAsianLetter;
    if (is_in(kHanKanas, code_point)) classes |= kHanKana;
    return classes;
}

constexpr bool contains(const char* set, uint32_t c) {
    for (; *set != '\0'; ++set) {
        if (static_cast<uint32_t>(*set) == c) return true;
    }
    return false;
}

constexpr CharClasses ascii_classes(uint32_t c) {
    CharClasses classes = named_sets(c);
    if (c >= 'a' && c <= 'z') classes |= kLetter | kAsciiLower;
    if (c >= 'A' && c <= 'Z') classes |= kLetter | kAsciiUpper;
    if (c >= '0' && c <= '9') classes |= kNumber | kDigit;
    if (c == ' ' || (c >= '\t' && c <= '\r')) classes |= kSpace;
    if (c == ' ') classes |= kBlank;
    if (c == '\r' || c == '\n') classes |= kLineEnd;
    if (contains("!\"#%&'()*,-./:;?@[\\]_{}", c)) classes |= kPunctuation | kAsciiMark;
    if (contains("$+<=>^`|~", c)) classes |= kSymbol | kAsciiMark;
    if (contains("$+<=>^~|", c)) classes |= kMathAscii;
    if (c == '`') classes |= kBacktick;
    if (c == '/') classes |= kSlash;
    return classes;
}

constexpr std::array<CharClasses, 128> make_ascii() {
    std::array<CharClasses, 128> table{};
    for (uint32_t c = 0; c < 128; ++c) table[c] = ascii_classes(c);
    return table;
}

constexpr std::array<CharClasses, 128> kAscii = make_ascii();

}  // namespace

CharClasses char_classes(uint32_t code_point) {
    if (code_point < 128) return kAscii[code_point];
    if (is_in(kWideSpaces, code_point)) return kSpace | kAny;
    return category_class(code_point) | named_sets(code_point);
}

}  // namespace inlay
