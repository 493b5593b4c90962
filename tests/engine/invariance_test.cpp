// The same tokens, always: logits of a sequence are equal bit for bit however it is computed.
#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "base/xxhash.h"
#include "sanitized.h"
#include "test_model.h"

using namespace inlay;
using namespace inlay::test;

namespace {

struct Case {
    std::string name;
    std::filesystem::path path;
    ComputeMode compute;
    KvType kv_type;
    size_t n_tokens;
    uint64_t digest;  // of the logits of the first kDigestTokens tokens
};

constexpr size_t kDigestTokens = 60;
constexpr int32_t kTokensBelow = 384;  // in every model's vocabulary

std::vector<Case> cases() {
    const auto llama = data_dir() / "tiny/llama/llama.f16.gguf";
    const auto q4_k = data_dir() / "quant_models/q_Q4_K_M.gguf";
    const auto q4_1 = data_dir() / "quant_models/q_Q4_1.gguf";
    std::vector<Case> all = {{"f16 weights, f32 KV", llama, ComputeMode::kF32, KvType::kF32, 400, 0xba066f9645f7a82b},
                             {"Q4_K_M, f16 KV", q4_k, ComputeMode::kAuto, KvType::kF16, 400, 0x20b65f44a21912a1},
                             {"Q4_K_M in f32, f16 KV", q4_k, ComputeMode::kF32, KvType::kF16, 200, 0x1f8065300c662502},
                             {"gemma 3, windows of 16", data_dir() / "tiny/gemma3_text/gemma3_text.f32.gguf",
                              ComputeMode::kF32, KvType::kF32, 200, 0x9ada65f95b868c4a},
                             {"Q4_1, f16 KV", q4_1, ComputeMode::kAuto, KvType::kF16, 700, 0xa2e5086273302838},
                             {"Q4_1, bf16 KV", q4_1, ComputeMode::kAuto, KvType::kBf16, 200, 0x2626b49fe60dc4c5},
                             {"Q4_1, int8 KV", q4_1, ComputeMode::kAuto, KvType::kInt8, 700, 0xb2e7f5af8028621c},
                             {"Q4_1, int4 KV", q4_1, ComputeMode::kAuto, KvType::kInt4, 700, 0xb3dad75a4199e5f5},
                             {"gemma 3, int8 KV", data_dir() / "tiny/gemma3_text/gemma3_text.f32.gguf",
                              ComputeMode::kF32, KvType::kInt8, 200, 0xef0be26ef4aa678c},
                             {"gemma 3, int4 KV", data_dir() / "tiny/gemma3_text/gemma3_text.f32.gguf",
                              ComputeMode::kF32, KvType::kInt4, 200, 0xa928deeac17157b7}};
    const auto smollm2 = model_file("smollm2-135m-instruct-q4_1.gguf");
    if (!smollm2.empty())
        all.push_back({"SmolLM2, f16 KV", smollm2, ComputeMode::kAuto, KvType::kF16, 130, 0xd80335808949f3bf});
    if (kSlowed)
        for (Case& which : all) which.n_tokens = std::min<size_t>(which.n_tokens, 140);
    return all;
}

std::vector<int32_t> random_tokens(size_t n, int32_t below) {
    std::mt19937 random(7);
    std::uniform_int_distribution<int32_t> token(0, below - 1);
    std::vector<int32_t> tokens(n);
    for (int32_t& t : tokens) t = token(random);
    return tokens;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

ModelOptions options_of(const Case& which) {
    ModelOptions options;
    options.compute = which.compute;
    options.kv_type = which.kv_type;
    return options;
}

struct Baseline {
    std::vector<int32_t> tokens;
    std::vector<float> logits;
};

// One thread, chunks of 512.
Baseline baseline_of(const Case& which) {
    ModelOptions options = options_of(which);
    options.n_threads = 1;
    const TestModel model(which.path, options);
    Baseline baseline{random_tokens(which.n_tokens, kTokensBelow), {}};
    baseline.logits = logits_of(*model.session(1024), baseline.tokens, 512);
    return baseline;
}

}  // namespace

TEST_CASE("logits do not depend on how the prompt is cut into chunks") {
    for (const Case& which : cases()) {
        const Baseline baseline = baseline_of(which);
        const TestModel model(which.path, options_of(which));
        for (size_t chunk : {size_t{1}, size_t{7}, size_t{16}, size_t{100}}) {
            CAPTURE(which.name, chunk);
            CHECK(same_bits(logits_of(*model.session(1024), baseline.tokens, chunk), baseline.logits));
        }
    }
}

TEST_CASE("logits do not depend on the number of threads") {
    for (const Case& which : cases()) {
        const Baseline baseline = baseline_of(which);
        for (uint32_t n_threads : {2u, 3u, 7u}) {
            CAPTURE(which.name, n_threads);
            ModelOptions options = options_of(which);
            options.n_threads = n_threads;
            const TestModel model(which.path, options);
            CHECK(same_bits(logits_of(*model.session(1024), baseline.tokens, 150), baseline.logits));
            const std::span<const int32_t> start = std::span(baseline.tokens).first(40);
            CHECK(same_bits(logits_of(*model.session(1024), start, 1),
                            std::span(baseline.logits).first(40 * model.engine->n_vocabulary())));
        }
    }
}

// The digests were taken on x86-64. Whoever changes the arithmetic (docs/numerics.md) on purpose takes new ones.
TEST_CASE("logits have the same bits on every processor") {
    for (const Case& which : cases()) {
        CAPTURE(which.name);
        const TestModel model(which.path, options_of(which));
        const std::vector<float> logits =
            logits_of(*model.session(), random_tokens(kDigestTokens, kTokensBelow), kDigestTokens);
        CHECK(XXH3_64bits(logits.data(), logits.size() * sizeof(float)) == which.digest);
    }
}

TEST_CASE("logits do not depend on the instruction set") {
    for (const Case& which : cases()) {
        const Baseline baseline = baseline_of(which);
        const size_t n_tokens = std::min<size_t>(baseline.tokens.size(), 60);
        for (const kernels::Kernels* table : {kernels::avx2(), &kernels::portable()}) {
            if (!table || (which.n_tokens == 130 && table == &kernels::portable())) continue;
            CAPTURE(which.name, table->name);
            ModelOptions options = options_of(which);
            options.kernels = table;
            const TestModel model(which.path, options);
            const std::span<const int32_t> start = std::span(baseline.tokens).first(n_tokens);
            CHECK(same_bits(logits_of(*model.session(1024), start, 25),
                            std::span(baseline.logits).first(n_tokens * model.engine->n_vocabulary())));
        }
    }
}

TEST_CASE("the fastest kernels compute what the definition computes") {
    for (const Case& which : cases()) {
        if (which.n_tokens == 130) continue;
        CAPTURE(which.name);
        const Baseline baseline = baseline_of(which);
        ModelOptions options = options_of(which);
        options.kernels = &kernels::reference();
        const TestModel model(which.path, options);
        const std::span<const int32_t> start = std::span(baseline.tokens).first(40);
        CHECK(same_bits(logits_of(*model.session(1024), start, 40),
                        std::span(baseline.logits).first(40 * model.engine->n_vocabulary())));
    }
}

TEST_CASE("logits are the same after truncating and appending again") {
    for (const Case& which : cases()) {
        const Baseline baseline = baseline_of(which);
        const TestModel model(which.path, options_of(which));
        const size_t width = model.engine->n_vocabulary();
        for (size_t kept : {size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{17}, size_t{100}}) {
            CAPTURE(which.name, kept);
            const auto session = model.session(1024);
            const auto other = random_tokens(60, 300);
            session->forward(std::span(baseline.tokens).first(120), 120);
            session->truncate(kept);
            session->forward(other, other.size());
            session->truncate(kept);
            const auto rest = std::span(baseline.tokens).subspan(kept);
            CHECK(same_bits(logits_of(*session, rest, 512), std::span(baseline.logits).subspan(kept * width)));
        }
    }
}

TEST_CASE("logits after a prefix found in the cache equal computed ones") {
    for (const Case& which : cases()) {
        const Baseline baseline = baseline_of(which);
        ModelOptions options = options_of(which);
        options.no_reuse = false;
        const TestModel model(which.path, options);
        CAPTURE(which.name);
        const std::span<const int32_t> prompt = std::span(baseline.tokens).first(100);
        const auto first = generate(*model.session(1024), prompt, greedy(20));
        const auto session = model.session(1024);
        CHECK(generate(*session, prompt, greedy(20)) == first);
        CHECK(session->stats().n_reused_tokens == 96);
        const size_t width = model.engine->n_vocabulary();

        const auto again = model.session(1024);
        again->set_generation(greedy(1));
        again->append(prompt);
        Chunk chunk;
        again->next(chunk);
        CHECK(same_bits(again->logits(), std::span(baseline.logits).subspan(99 * width, width)));
    }
}
