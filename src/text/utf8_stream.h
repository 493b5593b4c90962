// Text leaves the library in whole code points, but a token may end in the middle of one: this value holds the bytes
// that still wait for their rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace inlay {

class Utf8Stream {
public:
    // Appends to `out` all code points that are whole by now. Bytes that can no longer become one are replaced by
    // U+FFFD at once, one for each maximal part of a well-formed sequence (the Unicode standard's practice,
    // chapter 3.9).
    void push(std::string_view bytes, std::string& out);

    // The end of the text: what still waits becomes one U+FFFD.
    void flush(std::string& out);

    size_t n_waiting() const { return n_waiting_; }
    // The bytes that wait: pushed into a fresh stream they give this one.
    std::string_view waiting() const { return {waiting_, n_waiting_}; }

private:
    void start(unsigned char byte, std::string& out);

    char waiting_[4] = {};
    uint8_t n_waiting_ = 0;
    uint8_t n_missing_ = 0;        // bytes the waiting sequence still needs
    unsigned char lowest_ = 0x80;  // bounds of its next byte
    unsigned char highest_ = 0xBF;
};

}  // namespace inlay
