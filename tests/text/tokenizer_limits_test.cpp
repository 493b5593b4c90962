// Long words and long lines: time grows with the text, the stack does not.
#include <pthread.h>

#include <catch2/catch.hpp>
#include <functional>

#include "tests/reference_data.h"
#include "tests/sanitized.h"
#include "tests/text/sentencepiece_vocabulary.h"
#include "tests/text/tokenizer_goldens.h"
#include "tests/thread_time.h"
#include "text/utf8.h"

using namespace inlay;
using namespace inlay::test;

namespace {

// Runs `work` on a thread with 256 KiB of stack.
void on_small_stack(std::function<void()> work) {
    pthread_attr_t attributes;
    REQUIRE(pthread_attr_init(&attributes) == 0);
    REQUIRE(pthread_attr_setstacksize(&attributes, 256 * 1024) == 0);
    pthread_t thread;
    const auto run = [](void* argument) -> void* {
        (*static_cast<std::function<void()>*>(argument))();
        return nullptr;
    };
    REQUIRE(pthread_create(&thread, &attributes, run, &work) == 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
}

std::string repeated(std::string_view part, size_t n_characters) {
    std::string text;
    for (size_t i = 0; i < n_characters; ++i) text += part;
    return text;
}

std::string mixed(size_t n_characters) {
    const uint32_t alphabet[] = {'a',  'Z',  '7',    ' ',    ' ',   '\'',    's',  '.',
                                 '\n', 0xE9, 0x4E2D, 0x3000, 0x301, 0x1F600, 0x661};
    std::string text;
    for (size_t i = 0; i < n_characters; ++i)
        append_code_point(alphabet[(i * 7919 + i / 13) % std::size(alphabet)], text);
    return text;
}

struct LongText {
    const char* name;
    std::string text;
};

std::vector<LongText> long_texts() {
    constexpr size_t n = 200'000;
    return {{"equal letters", repeated("a", 131'072)},
            {"upper-case letters", repeated("A", n)},
            {"spaces", repeated(" ", n)},
            {"spaces before a letter", repeated(" ", n) + "x"},
            {"spaces, each with a tab", repeated(" \t", n / 2) + "x"},
            {"wide spaces", repeated("\u3000", n) + "x"},
            {"digits", repeated("7", n)},
            {"letters", repeated("the", n / 3)},
            {"line ends", repeated("\n", n)},
            {"line ends and spaces", repeated("\n  ", n / 3) + "x"},
            {"apostrophes", repeated("'", n)},
            {"marks", repeated("!", n)},
            {"combining marks", "e" + repeated("\u0301", n)},
            {"Han", repeated("\u4e2d", n)},
            {"emoji", repeated("\U0001F600", n)},
            {"no UTF-8", repeated("\xff", n)},
            {"starts of special tokens", repeated("<|", n / 2)},
            {"special tokens", repeated("<|im_end|>", n / 10)},
            {"mixed", mixed(n)}};
}

// The text that comes back where the vocabulary says all UTF-8; SentencePiece's byte tokens say any bytes.
std::string expected(const Tokenizer& tokenizer, const std::string& text) {
    return tokenizer.vocabulary().model == "llama" ? text : repair_utf8(text);
}

void check_long_texts(const Tokenizer& tokenizer, const std::string& vocabulary) {
    for (const LongText& example : long_texts()) {
        std::string back;
        double seconds = 0;
        on_small_stack([&] {
            const double start = thread_seconds();
            const auto ids = tokenizer.tokenize(example.text, true, true);
            back = tokenizer.detokenize(tokenizer.tokenize(example.text, false, true), {true, false, true});
            seconds = thread_seconds() - start;
        });
        INFO(vocabulary << ": " << example.name << " took " << seconds << " s");
        CHECK(back == expected(tokenizer, example.text));
        CHECK(seconds < 15);  // two passes on a slow machine under sanitizers; quadratic time would be minutes
    }
}

}  // namespace

TEST_CASE("tokenizer: long texts on a small stack", "[tokenizer][limits]") {
    check_long_texts(*open_tokenizer(data_dir() / "tiny/llama/llama.f16.gguf"), "tiny");
}

TEST_CASE("tokenizer: long texts with a SentencePiece vocabulary", "[tokenizer][limits]") {
    for (const bool add_space_prefix : {true, false})
        check_long_texts(*Tokenizer::create(small_sentencepieces(add_space_prefix)), "small");
    const auto gemma = model_file("gemma-3-270m-q4_k_m.gguf");
    if (gemma.empty()) INLAY_SKIP("the model gemma-3-270m-q4_k_m.gguf was not fetched");
    check_long_texts(*open_tokenizer(gemma), "gemma");
}

TEST_CASE("tokenizer: long texts with every pre-tokenizer", "[tokenizer][limits]") {
    const FileSource source((data_dir() / "tiny/llama/llama.f16.gguf").string());
    const GgufFile file = GgufFile::read(source);
    size_t index = 0;
    for (const char* pre :
         {"default", "llama-bpe", "qwen2", "qwen35", "smollm", "falcon", "deepseek-llm", "deepseek-coder",
          "deepseek-v3", "tekken", "gpt-4o", "seed-coder", "bailingmoe", "minicpm5"}) {
        if (!is_done(index++, 5)) continue;
        Vocabulary vocabulary = vocabulary_from_gguf(file);
        vocabulary.pre = pre;
        check_long_texts(*Tokenizer::create(std::move(vocabulary)), pre);
    }
}

TEST_CASE("tokenizer: long texts with large vocabularies", "[tokenizer][limits][refdata]") {
    const auto reference = reference_dir();
    if (reference.empty()) INLAY_SKIP("no reference data (INLAY_REFDATA)");
    size_t index = 0;
    for (const char* name : {"gpt-2", "llama-bpe", "qwen2", "deepseek-llm", "llama-spm", "phi-3"}) {
        if (!is_done(index++, 4)) continue;
        check_long_texts(*open_tokenizer(reference / "vocab" / (std::string("ggml-vocab-") + name + ".gguf")), name);
    }
}
