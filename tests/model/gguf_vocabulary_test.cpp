// Vocabularies in the heads of GGUF files, built byte by byte.
#include "model/gguf_vocabulary.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <iterator>
#include <random>

#include "base/byte_source.h"
#include "base/error.h"
#include "base/printable.h"
#include "tests/reference_data.h"
#include "tests/text/tokenizer_goldens.h"
#include "text/tokenizer.h"

using namespace inlay;
using namespace inlay::test;

namespace {

// Writes the little of the format that a vocabulary needs.
class GgufHead {
public:
    GgufHead& text(const char* key, const char* value) {
        begin(key, 8);
        put_text(value);
        return *this;
    }
    GgufHead& id(const char* key, uint32_t value) {
        begin(key, 4);
        put(value);
        return *this;
    }
    GgufHead& flag(const char* key, bool value) {
        begin(key, 7);
        bytes_.push_back(value ? 1 : 0);
        return *this;
    }
    GgufHead& texts(const char* key, std::initializer_list<const char*> values) {
        begin(key, 9);
        put(uint32_t{8});
        put(uint64_t{values.size()});
        for (const char* value : values) put_text(value);
        return *this;
    }
    GgufHead& types(const char* key, std::initializer_list<int32_t> values) {
        begin(key, 9);
        put(uint32_t{5});
        put(uint64_t{values.size()});
        for (const int32_t value : values) put(value);
        return *this;
    }
    GgufHead& scores(std::initializer_list<float> values) {
        begin("tokenizer.ggml.scores", 9);
        put(uint32_t{6});
        put(uint64_t{values.size()});
        for (const float value : values) put(value);
        return *this;
    }
    Vocabulary vocabulary() const {
        GgufHead file;
        file.bytes_ = "GGUF";
        file.put(uint32_t{3});
        file.put(uint64_t{0});
        file.put(n_keys_);
        file.bytes_ += bytes_;
        const MemorySource source(file.bytes_.data(), file.bytes_.size());
        return vocabulary_from_gguf(GgufFile::read(source));
    }

private:
    template <typename T>
    void put(T value) {
        bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    void put_text(const std::string& value) {
        put(uint64_t{value.size()});
        bytes_ += value;
    }
    void begin(const char* key, uint32_t type) {
        ++n_keys_;
        put_text(key);
        put(type);
    }

    std::string bytes_;
    uint64_t n_keys_ = 0;
};

GgufHead gpt2_head() {
    return GgufHead().text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "gpt-2");
}

GgufHead sentencepiece_head() {
    return GgufHead()
        .text("tokenizer.ggml.model", "llama")
        .texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "a"});
}

void check_refused(const GgufHead& head, int32_t status, const char* named) {
    try {
        Tokenizer::create(head.vocabulary());
        FAIL("accepted: " << named);
    } catch (const Error& error) {
        CHECK(error.status() == status);
        CHECK_THAT(error.sentence(), Catch::Contains(named));
    }
}

}  // namespace

TEST_CASE("gguf vocabulary: what the keys say", "[tokenizer]") {
    const Vocabulary vocabulary = gpt2_head()
                                      .texts("tokenizer.ggml.tokens", {"a", "b", "<s>", "", "x"})
                                      .types("tokenizer.ggml.token_type", {1, 4, 3, 5, 99, 1})
                                      .texts("tokenizer.ggml.merges", {"a b"})
                                      .id("tokenizer.ggml.bos_token_id", 2)
                                      .id("tokenizer.ggml.padding_token_id", UINT32_MAX)
                                      .flag("tokenizer.ggml.add_bos_token", true)
                                      .vocabulary();
    CHECK(vocabulary.tokens.size() == 5);
    CHECK(vocabulary.tokens[3] == "[EMPTY_3]");
    CHECK(vocabulary.kinds == std::vector<TokenKind>{TokenKind::kNormal, TokenKind::kUserDefined, TokenKind::kControl,
                                                     TokenKind::kUnused, TokenKind::kUnused});
    CHECK(vocabulary.merges.size() == 1);
    CHECK(vocabulary.bos == 2);
    CHECK(vocabulary.eos == kNoToken);
    CHECK(vocabulary.pad == kNoToken);
    CHECK(vocabulary.add_bos);
    CHECK(Tokenizer::create(vocabulary)->tokenize("a", true, false) == std::vector<int32_t>{2, 0});
}

TEST_CASE("gguf vocabulary: defaults of a pre-tokenizer", "[tokenizer]") {
    const auto head = [] {
        return GgufHead()
            .text("tokenizer.ggml.model", "gpt2")
            .text("tokenizer.ggml.pre", "llama-bpe")
            .texts("tokenizer.ggml.tokens", {"a"})
            .texts("tokenizer.ggml.merges", {});
    };
    CHECK(head().vocabulary().add_bos);
    CHECK_FALSE(head().flag("tokenizer.ggml.add_bos_token", false).vocabulary().add_bos);
}

TEST_CASE("gguf vocabulary: defaults of SentencePiece", "[tokenizer]") {
    const auto head = [] { return sentencepiece_head().scores({0, 0, 0, -1.5f, -2}); };
    const Vocabulary vocabulary = head().vocabulary();
    CHECK(vocabulary.scores == std::vector<float>{0, 0, 0, -1.5f});
    CHECK(vocabulary.unk == 0);
    CHECK(vocabulary.bos == 1);
    CHECK(vocabulary.eos == 2);
    CHECK(vocabulary.add_bos);
    CHECK_FALSE(vocabulary.add_eos);
    CHECK(vocabulary.add_space_prefix);
    CHECK(vocabulary.kinds[2] == TokenKind::kControl);
    CHECK(vocabulary.end_of_generation == std::vector<int32_t>{2});
    CHECK(vocabulary.trims_after.empty());
    const Vocabulary other = head()
                                 .id("tokenizer.ggml.bos_token_id", 3)
                                 .id("tokenizer.ggml.eos_token_id", 77)
                                 .flag("tokenizer.ggml.add_bos_token", false)
                                 .flag("tokenizer.ggml.add_eos_token", true)
                                 .flag("tokenizer.ggml.add_space_prefix", false)
                                 .text("general.name", "My Phi-3 mini")
                                 .vocabulary();
    CHECK(other.bos == 3);
    CHECK(other.eos == 2);
    CHECK_FALSE(other.add_bos);
    CHECK(other.add_eos);
    CHECK_FALSE(other.add_space_prefix);
    CHECK(other.trims_after == std::vector<int32_t>{2});
    CHECK(GgufHead()
              .text("tokenizer.ggml.model", "llama")
              .texts("tokenizer.ggml.tokens", {"a"})
              .scores({0})
              .vocabulary()
              .bos == kNoToken);
}

TEST_CASE("gguf vocabulary: files that lie are refused by name", "[tokenizer]") {
    check_refused(GgufHead().texts("tokenizer.ggml.tokens", {"a"}), INLAY_E_FORMAT, "tokenizer.ggml.model");
    check_refused(gpt2_head(), INLAY_E_FORMAT, "tokenizer.ggml.tokens");
    check_refused(gpt2_head().texts("tokenizer.ggml.tokens", {}), INLAY_E_FORMAT, "tokenizer.ggml.tokens");
    check_refused(gpt2_head().id("tokenizer.ggml.tokens", 1), INLAY_E_FORMAT, "tokenizer.ggml.tokens");
    check_refused(gpt2_head().texts("tokenizer.ggml.tokens", {"a"}), INLAY_E_FORMAT, "tokenizer.ggml.merges");
    check_refused(gpt2_head().texts("tokenizer.ggml.tokens", {"a", "b"}).types("tokenizer.ggml.token_type", {1}),
                  INLAY_E_FORMAT, "tokenizer.ggml.token_type");
    check_refused(gpt2_head().texts("tokenizer.ggml.tokens", {"a", "a"}).texts("tokenizer.ggml.merges", {}),
                  INLAY_E_FORMAT, "same text");
    check_refused(GgufHead()
                      .text("tokenizer.ggml.model", "gpt2")
                      .text("tokenizer.ggml.pre", "unheard-of")
                      .texts("tokenizer.ggml.tokens", {"a"})
                      .texts("tokenizer.ggml.merges", {}),
                  INLAY_E_UNSUPPORTED, "unheard-of");
    check_refused(sentencepiece_head(), INLAY_E_FORMAT, "tokenizer.ggml.scores");
    check_refused(sentencepiece_head().scores({0, 0, 0}), INLAY_E_FORMAT, "tokenizer.ggml.scores");
    check_refused(sentencepiece_head().scores({0, 0, 0, std::nanf("")}), INLAY_E_FORMAT, "score of token 3");
    check_refused(GgufHead().text("tokenizer.ggml.model", "rwkv").texts("tokenizer.ggml.tokens", {"a"}),
                  INLAY_E_UNSUPPORTED, "rwkv");
}

TEST_CASE("gguf vocabulary: damaged heads are refused or work", "[tokenizer]") {
    std::ifstream file(data_dir() / "tiny/llama/llama.f16.gguf", std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(file), {}};
    const MemorySource source(whole.data(), whole.size());
    const size_t head = static_cast<size_t>(GgufFile::read(source).data_offset());
    std::mt19937_64 random(6);
    size_t n_working = 0;
    for (int i = 0; i < 1000; ++i) {
        std::string bytes = whole;
        for (size_t n = random() % 4 + 1; n > 0; --n) bytes[random() % head] = static_cast<char>(random() & 0xFF);
        try {
            const MemorySource damaged(bytes.data(), bytes.size());
            const auto tokenizer = Tokenizer::create(vocabulary_from_gguf(GgufFile::read(damaged)));
            const auto ids = tokenizer->tokenize("Any text, 123 <|im_end|>\xff", true, true);
            tokenizer->detokenize(ids, {true, true});
            ++n_working;
        } catch (const Error& error) {
            const bool expected = error.status() == INLAY_E_FORMAT || error.status() == INLAY_E_UNSUPPORTED;
            CHECK(expected);
            CHECK(is_printable(error.sentence()));
        }
    }
    CHECK(n_working > 0);
}

TEST_CASE("gguf vocabulary: end of generation of a chat model", "[tokenizer]") {
    const auto path = model_file("smollm2-135m-instruct-q4_1.gguf");
    if (path.empty()) INLAY_SKIP("the model smollm2-135m-instruct-q4_1.gguf was not fetched");
    const auto tokenizer = open_tokenizer(path);
    CHECK(tokenizer->n_tokens() == 49152);
    CHECK(tokenizer->eos() == 2);
    CHECK(tokenizer->token_text(tokenizer->eot()) == "<|im_end|>");
    CHECK(tokenizer->is_end_of_generation(tokenizer->find_token("<|im_end|>")));
    CHECK(tokenizer->is_end_of_generation(tokenizer->find_token("<|endoftext|>")));
    CHECK_FALSE(tokenizer->is_end_of_generation(tokenizer->find_token("<|im_start|>")));
}
