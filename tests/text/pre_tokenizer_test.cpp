#include "text/pre_tokenizer.h"

#include <catch2/catch.hpp>
#include <string>

#include "base/error.h"

using namespace inlay;

namespace {

// The words with a '|' between.
std::string cut(const char* pre, std::string_view text) {
    WordSplitter splitter;
    std::string words;
    size_t at = 0;
    for (const uint32_t length : splitter.split(find_pre_tokenizer(pre), text)) {
        if (at > 0) words += '|';
        words += text.substr(at, length);
        at += length;
    }
    CHECK(at == text.size());
    return words;
}

}  // namespace

TEST_CASE("pre-tokenizer: GPT-2's words", "[pre_tokenizer]") {
    CHECK(cut("gpt-2", "") == "");
    CHECK(cut("gpt-2", "Hello world") == "Hello| world");
    CHECK(cut("gpt-2", "it's IT'S we'll") == "it|'s| IT|'|S| we|'ll");
    CHECK(cut("gpt-2", "a  b   ") == "a| | b|   ");
    CHECK(cut("gpt-2", "x1234!? y") == "x|1234|!?| y");
    CHECK(cut("gpt-2", "a\n\nb") == "a|\n|\n|b");
    CHECK(cut("gpt-2", "caf\u00e9 \u4e2d\u6587\u0661") == "caf\u00e9| \u4e2d\u6587|\u0661");
}

TEST_CASE("pre-tokenizer: Llama 3's and Qwen 2's words", "[pre_tokenizer]") {
    CHECK(cut("llama-bpe", "IT'S (ok) 12345") == "IT|'S| (|ok|)| |123|45");
    CHECK(cut("llama-bpe", "a \n \n b") == "a| \n \n| b");
    CHECK(cut("llama-bpe", "x;\n\ny") == "x|;\n\n|y");
    CHECK(cut("llama-bpe", "\tx") == "\tx");
    CHECK(cut("qwen2", "12345") == "1|2|3|4|5");
}

TEST_CASE("pre-tokenizer: several passes", "[pre_tokenizer]") {
    CHECK(cut("smollm", "ab 123") == "ab| |1|2|3");
    CHECK(cut("default", "a.b 1234") == "a|.|b| |123|4");
    CHECK(cut("deepseek-llm", "a  \n1 ") == "a|  |\n|1| ");
    CHECK(cut("deepseek-v3", "12345\u4e2d\u6587 don't") == "123|45|\u4e2d\u6587| don|'t");
    CHECK(cut("gpt-4o", "HelloWorld IT'S") == "Hello|World| IT'S");
}

TEST_CASE("pre-tokenizer: names", "[pre_tokenizer]") {
    CHECK(&find_pre_tokenizer("") == &find_pre_tokenizer("default"));
    CHECK(&find_pre_tokenizer("llama3") == &find_pre_tokenizer("llama-bpe"));
    CHECK(find_pre_tokenizer("llama-bpe").whole_words_first);
    CHECK_FALSE(find_pre_tokenizer("smollm").clean_up_spaces);
    for (const char* unknown : {"gpt", "gpt-2 phi-2", " ", "llama-bpe "}) {
        try {
            find_pre_tokenizer(unknown);
            FAIL(unknown);
        } catch (const Error& error) {
            CHECK(error.status() == INLAY_E_UNSUPPORTED);
            CHECK_THAT(error.sentence(), Catch::Contains(unknown));
        }
    }
}
