#include "text/special_tokens.h"

#include <catch2/catch.hpp>

using namespace inlay;

namespace {

Vocabulary recognised(std::initializer_list<const char*> tokens, int32_t eos = kNoToken) {
    Vocabulary vocabulary;
    for (const char* token : tokens) vocabulary.tokens.push_back(token);
    vocabulary.kinds.assign(tokens.size(), TokenKind::kNormal);
    vocabulary.eos = eos;
    recognise_special_tokens(vocabulary);
    return vocabulary;
}

using Ids = std::vector<int32_t>;

}  // namespace

TEST_CASE("special tokens: known by their spelling", "[special]") {
    const Vocabulary chat = recognised({"a", "<|endoftext|>", "<|im_end|>", "<|fim_prefix|>", "<|file_sep|>"}, 1);
    CHECK(chat.eot == 2);
    CHECK(chat.fim_prefix == 3);
    CHECK(chat.end_of_generation == Ids{1, 2, 4});
    CHECK(chat.kinds[0] == TokenKind::kNormal);
    for (size_t id = 1; id < 5; ++id) CHECK(chat.kinds[id] == TokenKind::kControl);
}

TEST_CASE("special tokens: what the file says is kept", "[special]") {
    Vocabulary vocabulary;
    for (const char* token : {"a", "b", "<|im_end|>"}) vocabulary.tokens.push_back(token);
    vocabulary.kinds.assign(3, TokenKind::kNormal);
    vocabulary.eot = 1;
    recognise_special_tokens(vocabulary);
    CHECK(vocabulary.eot == 1);
    CHECK(vocabulary.end_of_generation == Ids{1, 2});
    CHECK(recognised({"a", "b"}, 0).end_of_generation == Ids{0});
    CHECK(recognised({"a", "b"}).end_of_generation.empty());
}

TEST_CASE("special tokens: marks that end messages, not the generation", "[special]") {
    const Vocabulary harmony = recognised({"<|return|>", "<|call|>", "<|end|>", "<|channel|>"});
    CHECK(harmony.end_of_generation == Ids{0, 1});
    CHECK(harmony.kinds[2] == TokenKind::kUserDefined);
    CHECK(harmony.kinds[3] == TokenKind::kUserDefined);
    const Vocabulary gemma4 = recognised({"<|tool_response>", "</s>"});
    CHECK(gemma4.end_of_generation == Ids{0});
    CHECK(gemma4.kinds[1] == TokenKind::kNormal);
}

TEST_CASE("special tokens: those of Phi-3 swallow the white space behind them", "[special]") {
    Vocabulary vocabulary;
    for (const char* token : {"<unk>", "<s>", "</s>", "a", "<0x0A>", "<|endoftext|>", "<|user|>", "<x>"})
        vocabulary.tokens.push_back(token);
    vocabulary.kinds = {TokenKind::kUnknown, TokenKind::kControl, TokenKind::kControl, TokenKind::kNormal,
                        TokenKind::kByte,    TokenKind::kControl, TokenKind::kControl, TokenKind::kUserDefined};
    recognise_phi3_trimming(vocabulary);
    CHECK(vocabulary.trims_after == Ids{2, 6, 7});
}
