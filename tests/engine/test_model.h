// Opens models for the tests and runs them through Session, as a host does through the contract.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "engine/engine_cache.h"
#include "engine/session.h"
#include "reference_data.h"

namespace inlay::test {

struct ModelOptions {
    ComputeMode compute = ComputeMode::kF32;
    KvType kv_type = KvType::kF32;
    uint32_t n_threads = 2;
    const kernels::Kernels* kernels = nullptr;  // null: the fastest
    uint32_t max_step_tokens = 512;
    uint64_t cache_bytes = uint64_t{64} << 20;
    bool no_reuse = true;
    WhenFull when_full = WhenFull::kFail;
};

struct TestModel {
    std::shared_ptr<const Engine> engine;
    std::shared_ptr<const EngineCache> cache;

    explicit TestModel(const std::filesystem::path& path, const ModelOptions& options = {}) {
        EngineOptions engine_options;
        engine_options.n_threads = options.n_threads;
        engine_options.compute = options.compute;
        engine_options.kernels = options.kernels ? options.kernels : &kernels::fastest();
        engine_options.max_step_tokens = options.max_step_tokens;
        engine = Engine::open(path.string(), engine_options);
        CacheOptions cache_options;
        cache_options.budget_bytes = options.cache_bytes;
        cache_options.no_reuse = options.no_reuse;
        cache_options.when_full = options.when_full;
        cache = std::make_shared<const EngineCache>(
            engine, kv_layout_of(engine->spec(), options.kv_type, options.kv_type), cache_options);
    }

    std::unique_ptr<Session> session(uint32_t context_tokens = 0) const {
        return std::make_unique<Session>(cache, SessionOptions{.context_tokens = context_tokens});
    }
};

// Computes tokens in chunks of at most `chunk` and returns the logits of all rows: [n, n_vocabulary].
inline std::vector<float> logits_of(Session& session, std::span<const int32_t> tokens, size_t chunk) {
    std::vector<float> logits;
    for (size_t first = 0; first < tokens.size(); first += chunk) {
        session.forward(tokens.subspan(first, std::min(chunk, tokens.size() - first)), 0);
        logits.insert(logits.end(), session.logits().begin(), session.logits().end());
    }
    return logits;
}

// The tokens that a session generates after `prompt`.
inline std::vector<int32_t> generate(Session& session, std::span<const int32_t> prompt,
                                     const GenerationOptions& options) {
    session.set_generation(options);
    session.append(prompt);
    std::vector<int32_t> tokens;
    while (true) {
        Chunk chunk;
        const NextOutcome outcome = session.next(chunk);
        tokens.insert(tokens.end(), chunk.tokens.begin(), chunk.tokens.end());
        if (outcome == NextOutcome::kEnd) return tokens;
    }
}

inline GenerationOptions greedy(uint64_t max_new_tokens) {
    GenerationOptions options;
    options.ignore_end = true;
    options.max_new_tokens = max_new_tokens;
    return options;
}

}  // namespace inlay::test
