// SentencePiece vocabularies: order of merges, spaces, characters without a token, and which tokens text may become.
#include "text/sentencepiece_encoder.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "base/error.h"
#include "tests/reference_data.h"
#include "tests/text/sentencepiece_vocabulary.h"
#include "tests/text/tokenizer_goldens.h"
#include "tests/thread_time.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

using namespace inlay;
using namespace inlay::test;

namespace {

using Ids = std::vector<int32_t>;

Ids ids_of(const SentencePieces& pieces, const char* text) {
    return Tokenizer::create(pieces.made())->tokenize(text, false, false);
}

void check_refused(Vocabulary vocabulary, const char* named) {
    try {
        Tokenizer::create(std::move(vocabulary));
        FAIL("a vocabulary with bad " << named << " was accepted");
    } catch (const Error& error) {
        CHECK(error.status() == INLAY_E_FORMAT);
        CHECK_THAT(error.sentence(), Catch::Contains(named));
    }
}

// The definition, in quadratic time: of all neighbours that make a token the best, the leftmost of equal ones.
Ids merged_one_by_one(const Vocabulary& vocabulary, const std::string& text) {
    const auto find = [&](const std::string& piece) {
        for (size_t id = 0; id < vocabulary.tokens.size(); ++id)
            if (vocabulary.tokens[id] == piece) return static_cast<int32_t>(id);
        return kNoToken;
    };
    std::vector<std::string> symbols;
    for (const char c : text) symbols.emplace_back(1, c);
    for (;;) {
        size_t best = symbols.size();
        float best_score = 0;
        for (size_t i = 0; i + 1 < symbols.size(); ++i) {
            const int32_t id = find(symbols[i] + symbols[i + 1]);
            if (id == kNoToken) continue;
            const float score = vocabulary.scores[static_cast<size_t>(id)];
            if (best != symbols.size() && score <= best_score) continue;
            best = i;
            best_score = score;
        }
        if (best == symbols.size()) break;
        symbols[best] += symbols[best + 1];
        symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
    }
    Ids ids;
    for (const std::string& symbol : symbols) ids.push_back(find(symbol));
    return ids;
}

}  // namespace

TEST_CASE("sentencepiece: merges go by score, then by place in the text", "[sentencepiece]") {
    const auto ids = [](float ab, float bc, float abc, const char* text) {
        SentencePieces pieces(false);
        return ids_of(pieces.letters({"a", "b", "c"}).add("ab", ab).add("bc", bc).add("abc", abc), text);
    };
    CHECK(ids(-1, -2, -3, "abc") == Ids{5});
    CHECK(ids(-2, -1, -3, "abcbc") == Ids{5, 4});
    CHECK(ids(-2, -1, -3, "abab") == Ids{3, 3});
    CHECK(ids(-1, -1, -9, "babcb") == Ids{1, 5, 1});
    CHECK(ids(2.5f, -1, 3, "cab") == Ids{2, 3});
    SentencePieces runs(false);
    CHECK(ids_of(runs.letters({"a"}).add("aa", -1).add("aaa", -1), "aaaaa") == Ids{2, 1});
}

TEST_CASE("sentencepiece: zeros of both signs and infinities are scores", "[sentencepiece]") {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    SentencePieces zeros(false);
    CHECK(ids_of(zeros.letters({"a", "b", "c"}).add("ab", -0.0f).add("bc", 0.0f), "abc") == Ids{3, 2});
    SentencePieces ends(false);
    CHECK(ids_of(ends.letters({"a", "b", "c"}).add("ab", -kInfinity).add("bc", -3e38f), "abcab") == Ids{0, 4, 3});
    SentencePieces best(false);
    CHECK(ids_of(best.letters({"a", "b", "c"}).add("ab", 3e38f).add("bc", kInfinity), "abc") == Ids{0, 4});
}

TEST_CASE("sentencepiece: equal to merging one by one", "[sentencepiece]") {
    std::mt19937_64 random(11);
    for (int round = 0; round < 200; ++round) {
        SentencePieces pieces(false);
        pieces.letters({"a", "b", "c"});
        Vocabulary known = pieces.made();
        std::vector<std::string> made = {"a", "b", "c"};
        for (int i = 0; i < 12; ++i) {
            const std::string piece = made[random() % made.size()] + made[random() % made.size()];
            if (std::find(made.begin(), made.end(), piece) != made.end()) continue;
            made.push_back(piece);
            pieces.add(piece, static_cast<float>(random() % 8) - 4.0f);
        }
        const auto tokenizer = Tokenizer::create(pieces.made());
        for (int i = 0; i < 10; ++i) {
            std::string text(random() % 40, 'a');
            for (char& c : text) c = static_cast<char>('a' + random() % 3);
            CHECK(tokenizer->tokenize(text, false, false) == merged_one_by_one(pieces.made(), text));
        }
    }
}

TEST_CASE("sentencepiece: spaces", "[sentencepiece]") {
    const auto pieces = [](bool add_space_prefix) {
        SentencePieces made(add_space_prefix);
        made.letters({"▁", "a", "▁a", "▁▁"}).add("<c>", 0, TokenKind::kControl).add("<u>", 0, TokenKind::kUserDefined);
        return Tokenizer::create(made.made());
    };
    const auto with = pieces(true);
    CHECK(with->tokenize("", false, false).empty());
    CHECK(with->tokenize("a", false, false) == Ids{2});
    CHECK(with->tokenize(" a", false, false) == Ids{3, 1});
    CHECK(with->tokenize("a a", false, false) == Ids{2, 2});
    // Text behind a special token begins anew.
    CHECK(with->tokenize("<c>a<u>a<u><u>", false, true) == Ids{4, 2, 5, 2, 5, 5});
    CHECK(with->detokenize(Ids{2, 2}) == " a a");
    CHECK(with->detokenize(Ids{2, 2}, {false, false, true}) == "a a");
    CHECK(with->detokenize(Ids{3, 1}, {false, false, true}) == " a");
    CHECK(with->detokenize(Ids{1, 2}, {false, false, true}) == "a a");
    CHECK(with->detokenize(Ids{}, {false, false, true}).empty());
    CHECK(with->detokenize(Ids{4, 2}, {false, false, true}) == " a");  // only the first token's space
    const auto without = pieces(false);
    CHECK(without->tokenize("a a", false, false) == Ids{1, 2});
    CHECK(without->tokenize("<c>a<u> a", false, true) == Ids{4, 1, 5, 2});
    CHECK(without->detokenize(Ids{2, 2}, {false, false, true}) == " a a");
}

TEST_CASE("sentencepiece: the spacing character itself reads as a space", "[sentencepiece]") {
    SentencePieces pieces(false);
    pieces.letters({"▁", "a"}).add("▁u", 0, TokenKind::kUserDefined).bytes();
    const auto tokenizer = Tokenizer::create(pieces.made());
    CHECK(tokenizer->tokenize("a▁a a", false, false) == Ids{1, 0, 1, 0, 1});
    CHECK(tokenizer->detokenize(Ids{1, 0, 1}) == "a a");
    CHECK(tokenizer->detokenize(Ids{2}) == "▁u");  // tokens of their own are printed as they are
}

TEST_CASE("sentencepiece: characters without a token", "[sentencepiece]") {
    SentencePieces with_bytes(false);
    CHECK(ids_of(with_bytes.bytes().unknown().letters({"a"}), "aé!") == Ids{257, 0xC3, 0xA9, '!'});
    SentencePieces without_bytes(false);
    CHECK(ids_of(without_bytes.unknown().letters({"a"}), "aé!") == Ids{1, 0, 0});
    SentencePieces some_bytes(false);
    some_bytes.unknown().letters({"a"}).add("<0xC3>", 0, TokenKind::kByte).add("<0x21>", 0, TokenKind::kByte);
    CHECK(ids_of(some_bytes, "aé!") == Ids{1, 0, 3});
    SentencePieces none(false);
    CHECK(ids_of(none.letters({"a"}), "aé!a") == Ids{0, 0});
}

TEST_CASE("sentencepiece: text becomes no control, unknown, unused or byte token", "[sentencepiece]") {
    for (const TokenKind kind : {TokenKind::kControl, TokenKind::kUnknown, TokenKind::kUnused, TokenKind::kByte}) {
        SentencePieces pieces(false);
        CHECK(ids_of(pieces.letters({"a", "b"}).add("ab", 0, kind), "ab") == Ids{0, 1});
    }
    SentencePieces bytes(false);
    bytes.bytes().letters({"<0", "x4", "1>", "<0x4"});
    CHECK(ids_of(bytes, "<0x41>") == Ids{259, 258});
}

TEST_CASE("sentencepiece: special tokens that swallow the white space behind them", "[sentencepiece]") {
    SentencePieces pieces(true);
    pieces.letters({"▁", "a", "▁a", "\n"}).add("<c>", 0, TokenKind::kControl).add("<d>", 0, TokenKind::kControl);
    Vocabulary vocabulary = pieces.made();
    vocabulary.trims_after = {4};
    const auto tokenizer = Tokenizer::create(std::move(vocabulary));
    CHECK(tokenizer->tokenize("<c> \n\t\r\v\f a<c> \n", false, true) == Ids{4, 2, 4});
    CHECK(tokenizer->tokenize("<c> <d> a", false, true) == Ids{4, 5, 0, 2});
}

TEST_CASE("sentencepiece: scores that are none are refused", "[sentencepiece]") {
    Vocabulary vocabulary = SentencePieces().letters({"a", "b"}).made();
    vocabulary.scores.pop_back();
    check_refused(vocabulary, "scores");
    vocabulary.scores.clear();
    check_refused(vocabulary, "scores");
    check_refused(SentencePieces().letters({"a"}).add("b", std::nanf("")).made(), "score of token 1");
}

TEST_CASE("sentencepiece: any text comes back", "[sentencepiece]") {
    const uint32_t limits[] = {0x80, 0x80, 0x800, 0x3000, 0x10000, 0x110000};
    std::mt19937_64 random(12);
    for (const bool add_space_prefix : {true, false}) {
        const auto tokenizer = Tokenizer::create(small_sentencepieces(add_space_prefix));
        for (int i = 0; i < 2000; ++i) {
            std::string text;
            for (size_t n = random() % 60; n > 0; --n) {
                const auto value = static_cast<uint32_t>(random() % limits[random() % 6]);
                if (value == 0x2581 || (value >= 0xD800 && value <= 0xDFFF)) continue;
                append_code_point(random() % 4 == 0 ? uint32_t{' '} : value, text);
            }
            CHECK(tokenizer->detokenize(tokenizer->tokenize(text, false, false), {true, false, true}) == text);
        }
    }
}

TEST_CASE("sentencepiece: any bytes are taken", "[sentencepiece]") {
    const auto tokenizer = Tokenizer::create(small_sentencepieces(true));
    std::mt19937_64 random(13);
    for (int i = 0; i < 2000; ++i) {
        std::string bytes(random() % 40, '\0');
        for (char& byte : bytes) {
            byte = static_cast<char>(random() & 0xFF);
            if (byte == ' ' || byte == '\xE2') byte = 'a';  // a space in a broken character is said as U+2581
        }
        CHECK(tokenizer->detokenize(tokenizer->tokenize(bytes, false, false), {true, false, true}) == bytes);
    }
    CHECK(tokenizer->detokenize(tokenizer->tokenize("\xff a", false, false), {true, false, true}) == "\xff▁a");
}

TEST_CASE("sentencepiece: Gemma 3", "[sentencepiece]") {
    const auto path = model_file("gemma-3-270m-q4_k_m.gguf");
    if (path.empty()) INLAY_SKIP("the model gemma-3-270m-q4_k_m.gguf was not fetched");
    const FileSource source(path.string());
    Vocabulary vocabulary = vocabulary_from_gguf(GgufFile::read(source));
    const double start = thread_seconds();
    const auto tokenizer = Tokenizer::create(std::move(vocabulary));
    const double seconds = thread_seconds() - start;
    INFO("the vocabulary took " << seconds << " s");
    CHECK(seconds < 10);  // 0.1 s, but for sanitizers
    CHECK(tokenizer->n_tokens() == 262144);
    CHECK(tokenizer->adds_bos());
    CHECK_FALSE(tokenizer->adds_eos());
    CHECK(tokenizer->tokenize("", true, false) == Ids{tokenizer->find_token("<bos>")});
    CHECK(tokenizer->token_text(tokenizer->eot()) == "<end_of_turn>");
    CHECK(tokenizer->is_end_of_generation(tokenizer->find_token("<eos>")));
    CHECK(tokenizer->is_end_of_generation(tokenizer->find_token("<end_of_turn>")));
    CHECK_FALSE(tokenizer->is_end_of_generation(tokenizer->find_token("<start_of_turn>")));
}
