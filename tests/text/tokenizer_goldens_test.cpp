// Every vocabulary of the reference data: ids and texts equal to those of other programs.
#include <catch2/catch.hpp>

#include "tests/reference_data.h"
#include "tests/text/tokenizer_goldens.h"

using namespace inlay;
using namespace inlay::test;

namespace {

struct Counts {
    size_t ids = 0;
    size_t ids_parse_special = 0;
    size_t ids_add_special = 0;
    size_t texts = 0;
};

bool texts_equal(const Tokenizer& tokenizer, const TokenizerGolden& golden) {
    const auto& ids = golden.ids_parse_special;
    return tokenizer.detokenize(ids, {true, false, false}) == golden.pieces &&
           tokenizer.detokenize(ids, {true, true, true}) == golden.detok_unparse &&
           tokenizer.detokenize(ids, {false, true, true}) == golden.detok;
}

std::vector<int32_t> ids_add_special(const VocabularyGoldens& goldens, const TokenizerGolden& golden) {
    if (golden.ids_add_special) return *golden.ids_add_special;
    std::vector<int32_t> ids = goldens.add_special_prefix;
    ids.insert(ids.end(), golden.ids.begin(), golden.ids.end());
    ids.insert(ids.end(), goldens.add_special_suffix.begin(), goldens.add_special_suffix.end());
    return ids;
}

void check_vocabulary(const std::filesystem::path& model, const std::filesystem::path& goldens_dir, const char* name) {
    const auto tokenizer = open_tokenizer(model);
    const VocabularyGoldens goldens =
        read_goldens(goldens_dir / "strings.json", goldens_dir / (std::string(name) + ".json"));
    Counts equal;
    for (const TokenizerGolden& golden : goldens.cases) {
        INFO(name << ": " << golden.name);
        CHECK(tokenizer->tokenize(golden.text, false, false) == golden.ids);
        CHECK(tokenizer->tokenize(golden.text, false, true) == golden.ids_parse_special);
        CHECK(tokenizer->tokenize(golden.text, true, false) == ids_add_special(goldens, golden));
        CHECK(texts_equal(*tokenizer, golden));
        equal.ids += tokenizer->tokenize(golden.text, false, false) == golden.ids;
        equal.ids_parse_special += tokenizer->tokenize(golden.text, false, true) == golden.ids_parse_special;
        equal.ids_add_special += tokenizer->tokenize(golden.text, true, false) == ids_add_special(goldens, golden);
        equal.texts += texts_equal(*tokenizer, golden);
    }
    size_t random_equal = 0;
    for (const TokenizerGolden& golden : goldens.random_ids) {
        CHECK(texts_equal(*tokenizer, golden));
        random_equal += texts_equal(*tokenizer, golden);
    }
    WARN(name << ": of " << goldens.cases.size() << " strings equal: ids " << equal.ids << ", special parsed "
              << equal.ids_parse_special << ", special added " << equal.ids_add_special << ", texts " << equal.texts
              << "; of " << goldens.random_ids.size() << " random sequences " << random_equal);
}

}  // namespace

TEST_CASE("tokenizer goldens: the tiny committed vocabulary", "[tokenizer]") {
    check_vocabulary(data_dir() / "tiny/llama/llama.f16.gguf", data_dir() / "tokenizers", "tiny-bpe384");
}

TEST_CASE("tokenizer goldens: SmolLM2", "[tokenizer]") {
    const auto model = model_file("smollm2-135m-instruct-q4_1.gguf");
    if (model.empty()) INLAY_SKIP("the model smollm2-135m-instruct-q4_1.gguf was not fetched");
    check_vocabulary(model, data_dir() / "tokenizers", "smollm2-135m-instruct");
}

TEST_CASE("tokenizer goldens: Gemma 3", "[tokenizer]") {
    const auto model = model_file("gemma-3-270m-q4_k_m.gguf");
    if (model.empty()) INLAY_SKIP("the model gemma-3-270m-q4_k_m.gguf was not fetched");
    check_vocabulary(model, data_dir() / "tokenizers", "gemma-3-270m");
}

TEST_CASE("tokenizer goldens: the reference vocabularies", "[tokenizer][refdata]") {
    const auto reference = reference_dir();
    if (reference.empty()) INLAY_SKIP("no reference data (INLAY_REFDATA)");
    for (const char* name : {"gpt-2", "llama-bpe", "qwen2", "deepseek-llm", "llama-spm", "phi-3"}) {
        check_vocabulary(reference / "vocab" / (std::string("ggml-vocab-") + name + ".gguf"), reference / "tokenizers",
                         name);
    }
}
