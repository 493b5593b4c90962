// libFuzzer: any bytes are text, and any ids of the vocabulary are tokens. The first byte picks the tokenizer: the tiny
// model's vocabulary with one of the pre-tokenizers, or a small SentencePiece vocabulary.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"
#include "model/gguf.h"
#include "model/gguf_vocabulary.h"
#include "tests/text/sentencepiece_vocabulary.h"
#include "text/tokenizer.h"
#include "text/utf8.h"
#include "text/utf8_stream.h"

namespace {

constexpr std::array kPreTokenizers = {"default", "gpt-2",          "smollm",      "llama-bpe", "qwen2",
                                       "qwen35",  "deepseek-llm",   "deepseek-v3", "falcon",    "tekken",
                                       "gpt-4o",  "deepseek-coder", "seed-coder",  "minicpm5",  "bailingmoe"};

std::vector<std::unique_ptr<inlay::Tokenizer>> open_tokenizers() {
    const inlay::FileSource source(INLAY_TEST_DATA_DIR "/tiny/llama/llama.f16.gguf");
    const inlay::GgufFile file = inlay::GgufFile::read(source);
    std::vector<std::unique_ptr<inlay::Tokenizer>> tokenizers;
    for (const char* pre : kPreTokenizers) {
        inlay::Vocabulary vocabulary = inlay::vocabulary_from_gguf(file);
        vocabulary.pre = pre;
        tokenizers.push_back(inlay::Tokenizer::create(std::move(vocabulary)));
    }
    tokenizers.push_back(inlay::Tokenizer::create(inlay::test::small_sentencepieces(false)));
    return tokenizers;
}

// SentencePiece reads its spacing character as a space.
std::string expected(const inlay::Tokenizer& tokenizer, std::string_view text) {
    constexpr std::string_view kSpacing = "▁";
    std::string result(text);
    if (tokenizer.vocabulary().model != "llama") return result;
    for (size_t at = 0; (at = result.find(kSpacing, at)) != std::string::npos; ++at)
        result.replace(at, kSpacing.size(), " ");
    return result;
}

void require(bool holds) {
    if (!holds) __builtin_trap();
}

void check_text(const inlay::Tokenizer& tokenizer, std::string_view text) {
    const bool valid = inlay::is_valid_utf8(text);
    for (const bool parse_special : {false, true}) {
        const auto ids = tokenizer.tokenize(text, false, parse_special);
        const std::string back = tokenizer.detokenize(ids, {true, false});
        if (valid) require(back == expected(tokenizer, text));
    }
}

void check_ids(const inlay::Tokenizer& tokenizer, std::string_view bytes) {
    std::vector<int32_t> ids;
    for (const char byte : bytes) {
        ids.push_back((static_cast<unsigned char>(byte) * 3) % static_cast<int32_t>(tokenizer.n_tokens()));
    }
    inlay::Utf8Stream stream;
    std::string streamed;
    std::string token;
    for (const int32_t id : ids) {
        token.clear();
        tokenizer.append_token_bytes(id, true, token);
        stream.push(token, streamed);
        require(inlay::is_valid_utf8(streamed));
    }
    stream.flush(streamed);
    const std::string whole = tokenizer.detokenize(ids, {true, false});
    if (inlay::is_valid_utf8(whole)) require(whole == streamed);
    tokenizer.detokenize(ids, {false, true});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static const auto tokenizers = open_tokenizers();
    if (size == 0) return 0;
    const auto& tokenizer = *tokenizers[data[0] % tokenizers.size()];
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    check_text(tokenizer, bytes);
    if (size < 4096) check_ids(tokenizer, bytes);
    return 0;
}
