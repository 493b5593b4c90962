// What holds for any vocabulary: round trips, invalid bytes, special tokens, and refusals of vocabularies that
// contradict themselves.
#include "text/tokenizer.h"

#include <catch2/catch.hpp>
#include <random>
#include <thread>

#include "base/error.h"
#include "tests/reference_data.h"
#include "tests/text/tokenizer_goldens.h"
#include "text/utf8.h"

using namespace inlay;
using namespace inlay::test;

namespace {

std::unique_ptr<Tokenizer> tiny_tokenizer() {
    return open_tokenizer(data_dir() / "tiny/llama/llama.f16.gguf");
}

// Code points from all planes, short ones more often.
std::string random_utf8(std::mt19937_64& random, size_t n) {
    const uint32_t limits[] = {0x80, 0x80, 0x800, 0x3000, 0x10000, 0x110000};
    std::string text;
    while (n > 0) {
        const auto value = static_cast<uint32_t>(random() % limits[random() % 6]);
        if (value >= 0xD800 && value <= 0xDFFF) continue;
        append_code_point(value, text);
        --n;
    }
    return text;
}

Vocabulary letters(std::initializer_list<const char*> tokens, std::initializer_list<const char*> merges) {
    Vocabulary vocabulary;
    vocabulary.model = "gpt2";
    vocabulary.pre = "gpt-2";
    for (const char* token : tokens) vocabulary.tokens.push_back(token);
    for (const char* merge : merges) vocabulary.merges.push_back(merge);
    vocabulary.kinds.assign(tokens.size(), TokenKind::kNormal);
    return vocabulary;
}

void check_refused(Vocabulary vocabulary, int32_t status, const char* named) {
    try {
        Tokenizer::create(std::move(vocabulary));
        FAIL("a vocabulary with a bad " << named << " was accepted");
    } catch (const Error& error) {
        CHECK(error.status() == status);
        CHECK_THAT(error.sentence(), Catch::Contains(named));
    }
}

using Ids = std::vector<int32_t>;

}  // namespace

TEST_CASE("tokenizer: any text comes back byte by byte", "[tokenizer]") {
    const auto tokenizer = tiny_tokenizer();
    std::mt19937_64 random(1);
    for (int i = 0; i < 2000; ++i) {
        const std::string text = random_utf8(random, random() % 60);
        CHECK(tokenizer->detokenize(tokenizer->tokenize(text, false, false)) == text);
        CHECK(tokenizer->detokenize(tokenizer->tokenize(text, false, true), {true, false}) == text);
    }
}

TEST_CASE("tokenizer: any bytes are taken", "[tokenizer]") {
    const auto tokenizer = tiny_tokenizer();
    std::mt19937_64 random(2);
    for (int i = 0; i < 2000; ++i) {
        std::string bytes(random() % 40, '\0');
        for (char& byte : bytes) byte = static_cast<char>(random() & 0xFF);
        CHECK(tokenizer->detokenize(tokenizer->tokenize(bytes, false, false)) == repair_utf8(bytes));
    }
}

TEST_CASE("tokenizer: threads share one", "[tokenizer]") {
    const auto tokenizer = tiny_tokenizer();
    const std::string text = "One tokenizer, several threads; <|im_end|> 12345.";
    const auto expected = tokenizer->tokenize(text, true, true);
    std::vector<std::thread> threads;
    std::vector<int> equal(4, 0);
    for (size_t t = 0; t < equal.size(); ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 200; ++i) equal[t] += tokenizer->tokenize(text, true, true) == expected;
        });
    }
    for (auto& thread : threads) thread.join();
    CHECK(equal == std::vector<int>(4, 200));
}

TEST_CASE("tokenizer: what a user types stays text unless special tokens are parsed", "[tokenizer]") {
    Vocabulary vocabulary = letters({"a", "b", "<", ">", "<ctl>", "<usr>", "c", "t", "l"}, {});
    vocabulary.kinds[4] = TokenKind::kControl;
    vocabulary.kinds[5] = TokenKind::kUserDefined;
    vocabulary.bos = 4;
    vocabulary.add_bos = true;
    vocabulary.end_of_generation = {4};
    const auto tokenizer = Tokenizer::create(std::move(vocabulary));
    CHECK(tokenizer->tokenize("a<ctl>b<usr>", false, true) == Ids{0, 4, 1, 5});
    CHECK(tokenizer->tokenize("a<ctl>b<usr>", false, false) == Ids{0, 2, 6, 7, 8, 3, 1, 5});
    CHECK(tokenizer->tokenize("", true, false) == Ids{4});
    CHECK(tokenizer->tokenize("a", true, false) == Ids{4, 0});
    CHECK(tokenizer->detokenize(Ids{4, 0, 5}) == "a<usr>");
    CHECK(tokenizer->detokenize(Ids{4, 0, 5}, {true, false}) == "<ctl>a<usr>");
    CHECK(tokenizer->is_end_of_generation(4));
    CHECK_FALSE(tokenizer->is_end_of_generation(0));
    CHECK_FALSE(tokenizer->is_end_of_generation(-1));
    CHECK(tokenizer->find_token("<usr>") == 5);
    CHECK(tokenizer->find_token("<other>") == kNoToken);
}

TEST_CASE("tokenizer: ids outside the vocabulary are an error", "[tokenizer]") {
    const auto tokenizer = tiny_tokenizer();
    for (const int32_t id : {-1, static_cast<int32_t>(tokenizer->n_tokens()), INT32_MIN, INT32_MAX}) {
        CHECK_THROWS_AS(tokenizer->detokenize(Ids{id}), Error);
        CHECK_THROWS_AS(tokenizer->kind(id), Error);
        CHECK_THROWS_AS(tokenizer->token_text(id), Error);
    }
}

TEST_CASE("tokenizer: merges go by their place in the list, then by place in the word", "[tokenizer]") {
    const auto ids = [](std::initializer_list<const char*> merges, const char* text) {
        return Tokenizer::create(letters({"a", "b", "c", "ab", "bc", "aa", "abc"}, merges))
            ->tokenize(text, false, false);
    };
    CHECK(ids({"a b", "b c"}, "abc") == Ids{3, 2});
    CHECK(ids({"b c", "a b"}, "abc") == Ids{0, 4});
    CHECK(ids({"b c", "a bc"}, "abc") == Ids{6});
    CHECK(ids({"a a"}, "aaaaa") == Ids{5, 5, 0});
    CHECK(ids({"a b", "b c", "a b"}, "abab") == Ids{3, 3});
}

TEST_CASE("tokenizer: merges through strings that are no tokens", "[tokenizer]") {
    // "bc" is no token but a step to "abc"; where it goes no further it is said byte by byte.
    const auto tokenizer = Tokenizer::create(letters({"a", "b", "c", "abc"}, {"b c", "a bc"}));
    CHECK(tokenizer->tokenize("abc", false, false) == Ids{3});
    CHECK(tokenizer->tokenize("cbc", false, false) == Ids{2, 1, 2});
    // "d" has no token at all.
    CHECK(tokenizer->tokenize("adb", false, false) == Ids{0, 1});
}

TEST_CASE("tokenizer: odd merges are passed over", "[tokenizer]") {
    const auto tokenizer =
        Tokenizer::create(letters({"a", "b", "ab"}, {"", " ", "a", "a ", " b", "\xff \xfe", "一 a", "x  y", "a b"}));
    CHECK(tokenizer->tokenize("ab", false, false) == Ids{2});
}

TEST_CASE("tokenizer: kinds of tokens and their bytes", "[tokenizer]") {
    Vocabulary vocabulary = letters({"\xC4\xA0hi", "<0x0A>", "[PAD0]", "<unk>", "<0xZZ>", "\xE4\xB8\x80x", "\xff"}, {});
    vocabulary.kinds = {TokenKind::kNormal, TokenKind::kByte,   TokenKind::kUnused, TokenKind::kUnknown,
                        TokenKind::kByte,   TokenKind::kNormal, TokenKind::kNormal};
    const auto tokenizer = Tokenizer::create(std::move(vocabulary));
    const char* expected[] = {" hi", "\n", "", "<unk>", "<0xZZ>", "\xE4\xB8\x80x", "\xff"};
    for (int32_t id = 0; id < 7; ++id) {
        std::string bytes;
        tokenizer->append_token_bytes(id, true, bytes);
        CHECK(bytes == expected[id]);
    }
    CHECK(tokenizer->detokenize(Ids{0, 3}) == " hi");
}

TEST_CASE("tokenizer: vocabularies that contradict themselves are refused", "[tokenizer]") {
    check_refused(letters({}, {}), INLAY_E_FORMAT, "tokens");
    check_refused(letters({"a", "b", "a"}, {}), INLAY_E_FORMAT, "same text");
    Vocabulary vocabulary = letters({"a", "b"}, {});
    vocabulary.kinds.pop_back();
    check_refused(std::move(vocabulary), INLAY_E_FORMAT, "token types");
    for (const int32_t id : {2, -2, INT32_MAX}) {
        vocabulary = letters({"a", "b"}, {});
        vocabulary.eos = id;
        check_refused(std::move(vocabulary), INLAY_E_FORMAT, "eos");
        vocabulary = letters({"a", "b"}, {});
        vocabulary.end_of_generation = {id};
        check_refused(std::move(vocabulary), INLAY_E_FORMAT, "end-of-generation");
    }
    vocabulary = letters({"a"}, {});
    vocabulary.pre = "of-next-year";
    check_refused(std::move(vocabulary), INLAY_E_UNSUPPORTED, "of-next-year");
    vocabulary = letters({"a"}, {});
    vocabulary.model = "t5";
    check_refused(std::move(vocabulary), INLAY_E_UNSUPPORTED, "t5");
}
