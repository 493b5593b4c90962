#include "text/utf8_stream.h"

#include <catch2/catch.hpp>
#include <random>

#include "text/utf8.h"

using namespace inlay;

namespace {

std::string through(std::string_view bytes, size_t chunk) {
    Utf8Stream stream;
    std::string out;
    for (size_t at = 0; at < bytes.size(); at += chunk) stream.push(bytes.substr(at, chunk), out);
    stream.flush(out);
    return out;
}

}  // namespace

TEST_CASE("utf8 stream: bytes wait for their code point", "[utf8]") {
    Utf8Stream stream;
    std::string out;
    stream.push("a\xF0\x9F", out);
    CHECK(out == "a");
    CHECK(stream.n_waiting() == 2);
    stream.push("\x98", out);
    CHECK(out == "a");
    stream.push("\x80z", out);
    CHECK(out == "a\U0001F600z");
    CHECK(stream.n_waiting() == 0);
    stream.flush(out);
    CHECK(out == "a\U0001F600z");
}

TEST_CASE("utf8 stream: what can become nothing is replaced at once", "[utf8]") {
    // The examples of the Unicode standard, tables 3-8 to 3-11.
    CHECK(through("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", 1) == "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA");
    CHECK(through("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", 1) == "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA");
    CHECK(through("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", 1) ==
          "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA\uFFFD\uFFFD"
          "B");
    CHECK(through("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", 1) == "\uFFFD\uFFFD\uFFFD\uFFFDA");
    Utf8Stream stream;
    std::string out;
    stream.push(
        "\xE4\xB8"
        "x",
        out);
    CHECK(out == "\uFFFDx");
}

TEST_CASE("utf8 stream: an incomplete rest is replaced at the end", "[utf8]") {
    CHECK(through("ab\xE4\xB8", 1) == "ab\uFFFD");
    Utf8Stream stream;
    std::string out;
    stream.push("\xC3", out);
    stream.flush(out);
    stream.flush(out);
    stream.push("\xA9", out);  // a new text
    CHECK(out == "\uFFFD\uFFFD");
}

TEST_CASE("utf8 stream: always valid, whatever the chunks", "[utf8]") {
    std::mt19937 random(4);
    const unsigned char interesting[] = {'a', 0x80, 0xBF, 0xC2, 0xE0, 0xA0, 0xED, 0x9F, 0xF0, 0x90, 0xF4, 0x8F, 0xFF};
    for (int i = 0; i < 5000; ++i) {
        std::string bytes(random() % 20, '\0');
        for (char& byte : bytes) byte = static_cast<char>(interesting[random() % std::size(interesting)]);
        const std::string whole = through(bytes, 100);
        CHECK(is_valid_utf8(whole));
        CHECK(through(bytes, 1) == whole);
        CHECK(through(bytes, 3) == whole);
        if (is_valid_utf8(bytes)) CHECK(whole == bytes);
    }
}

TEST_CASE("utf8: validity and repair", "[utf8]") {
    CHECK(is_valid_utf8("plain, \u00e9, \u4e2d, \U0001F600, \uFFFD"));
    for (const char* bad :
         {"\x80", "\xC3", "\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80"})
        CHECK_FALSE(is_valid_utf8(bad));
    CHECK(repair_utf8("a\xFF\xC3\xA9") == "a\uFFFD\u00e9");
    CHECK(repair_utf8("\xC0\xAF") == "/");
    CHECK(repair_utf8("\xF4\x90\x80\x80") == "\uFFFD\uFFFD\uFFFD\uFFFD");
}
