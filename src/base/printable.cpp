#include "base/printable.h"

#include <cstdint>

namespace inlay {
namespace {

uint8_t byte_at(std::string_view bytes, size_t i) {
    return static_cast<uint8_t>(bytes[i]);
}

struct Utf8Form {
    uint8_t mask, lead;  // which leading bytes have this form
    size_t length;
    uint32_t first_point;  // smaller code points have a shorter form
};

constexpr Utf8Form kUtf8Forms[] = {
    {0x80, 0x00, 1, 0x0}, {0xe0, 0xc0, 2, 0x80}, {0xf0, 0xe0, 3, 0x800}, {0xf8, 0xf0, 4, 0x10000}};

bool is_printable_point(uint32_t point) {
    const bool control = point < 0x20 || (point >= 0x7f && point < 0xa0);
    const bool surrogate = point >= 0xd800 && point < 0xe000;
    return !control && !surrogate && point <= 0x10ffff;
}

// Length of the printable code point at the front, 0 if there is none.
size_t printable_length(std::string_view bytes) {
    for (const Utf8Form& form : kUtf8Forms) {
        if ((byte_at(bytes, 0) & form.mask) != form.lead) continue;
        if (bytes.size() < form.length) return 0;
        uint32_t point = byte_at(bytes, 0) & static_cast<uint8_t>(~form.mask);
        for (size_t i = 1; i < form.length; ++i) {
            if ((byte_at(bytes, i) & 0xc0) != 0x80) return 0;
            point = point << 6 | (byte_at(bytes, i) & 0x3f);
        }
        return point >= form.first_point && is_printable_point(point) ? form.length : 0;
    }
    return 0;
}

void append_escaped(std::string& text, uint8_t byte) {
    constexpr char kDigits[] = "0123456789abcdef";
    switch (byte) {
        case '\n':
            text += "\\n";
            return;
        case '\r':
            text += "\\r";
            return;
        case '\t':
            text += "\\t";
            return;
        default:
            text += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
}

}  // namespace

bool is_printable(std::string_view bytes) {
    while (!bytes.empty()) {
        const size_t length = printable_length(bytes);
        if (length == 0) return false;
        bytes.remove_prefix(length);
    }
    return true;
}

std::string printable(std::string_view bytes, size_t max_bytes) {
    std::string text;
    while (!bytes.empty()) {
        const size_t length = printable_length(bytes);
        std::string piece(bytes.substr(0, length));
        if (length == 0) append_escaped(piece, byte_at(bytes, 0));
        if (text.size() + piece.size() > max_bytes) return text + "...";
        text += piece;
        bytes.remove_prefix(length == 0 ? 1 : length);
    }
    return text;
}

}  // namespace inlay
