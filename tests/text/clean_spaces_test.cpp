#include "text/clean_spaces.h"

#include <catch2/catch.hpp>

using namespace inlay;

TEST_CASE("clean up spaces", "[detokenize]") {
    const auto cleaned = [](std::string text) {
        clean_up_spaces(text);
        return text;
    };
    CHECK(cleaned("") == "");
    CHECK(cleaned(" ") == " ");
    CHECK(cleaned("Hello , world ! a  . b ?") == "Hello, world! a . b?");
    CHECK(cleaned("we 've 're 's 'm 't 'll 'd") == "we've're's'm 't 'll 'd");
    CHECK(cleaned("dogs ' cats") == "dogs'cats");
    CHECK(cleaned(" ' ' x") == "'' x");
    CHECK(cleaned(" '") == " '");
    CHECK(cleaned("'s") == "'s");
}
