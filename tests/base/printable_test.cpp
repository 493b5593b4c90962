#include "base/printable.h"

#include <catch2/catch.hpp>
#include <string>

using namespace inlay;

TEST_CASE("printable text passes, everything else is escaped") {
    CHECK(printable("token_embd.weight", 100) == "token_embd.weight");
    CHECK(printable("Größe \xe2\x96\x81 \xf0\x9f\x98\x80", 100) == "Größe \xe2\x96\x81 \xf0\x9f\x98\x80");
    CHECK(printable({"a\0b\n\r\t\x7f", 7}, 100) == "a\\x00b\\n\\r\\t\\x7f");
    CHECK(printable("\xff\xc3", 100) == "\\xff\\xc3");
    CHECK(printable("\xc0\xaf", 100) == "\\xc0\\xaf");                    // overlong '/'
    CHECK(printable("\xed\xa0\x80", 100) == "\\xed\\xa0\\x80");           // surrogate
    CHECK(printable("\xf4\x90\x80\x80", 100) == "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
    CHECK(printable("\xc2\x85", 100) == "\\xc2\\x85");                    // a C1 control
    CHECK(printable("", 0).empty());
}

TEST_CASE("long text is cut between code points") {
    CHECK(printable("abcdef", 6) == "abcdef");
    CHECK(printable("abcdefg", 6) == "abcdef...");
    CHECK(printable("abcde\xc3\xbc", 6) == "abcde...");
    CHECK(printable(std::string(1000000, 'x'), 10) == "xxxxxxxxxx...");
}

TEST_CASE("is_printable is true exactly for what is not escaped") {
    CHECK(is_printable(""));
    CHECK(is_printable("Größe"));
    CHECK(!is_printable("a\nb"));
    CHECK(!is_printable("\xe2\x96"));
}
