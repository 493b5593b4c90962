#include "text/utf8_stream.h"

#include "text/utf8.h"

namespace inlay {

void Utf8Stream::push(std::string_view bytes, std::string& out) {
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        if (n_missing_ == 0) {
            start(byte, out);
            continue;
        }
        if (byte < lowest_ || byte > highest_) {
            flush(out);
            start(byte, out);
            continue;
        }
        waiting_[n_waiting_++] = c;
        lowest_ = 0x80;
        highest_ = 0xBF;
        if (--n_missing_ == 0) {
            out.append(waiting_, n_waiting_);
            n_waiting_ = 0;
        }
    }
}

void Utf8Stream::flush(std::string& out) {
    if (n_waiting_ > 0) append_code_point(kReplacementCharacter, out);
    n_waiting_ = 0;
    n_missing_ = 0;
}

// Table 3-7 of the Unicode standard: which second bytes may follow a first byte.
void Utf8Stream::start(unsigned char byte, std::string& out) {
    if (byte < 0x80) {
        out.push_back(static_cast<char>(byte));
        return;
    }
    if (byte < 0xC2 || byte > 0xF4) {
        append_code_point(kReplacementCharacter, out);
        return;
    }
    lowest_ = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
    highest_ = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
    n_missing_ = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
    waiting_[0] = static_cast<char>(byte);
    n_waiting_ = 1;
}

}  // namespace inlay
