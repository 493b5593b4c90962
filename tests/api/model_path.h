// Models and handles for tests of the contract, which see inlay.h only.
#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "inlay/inlay.h"
#include "reference_data.h"

namespace inlay::test {

inline std::string tiny_model() {
    return (data_dir() / "tiny/llama/llama.f16.gguf").string();
}

struct EngineRelease {
    void operator()(inlay_engine* handle) const { inlay_engine_release(handle); }
};
struct CacheRelease {
    void operator()(inlay_cache* handle) const { inlay_cache_release(handle); }
};
struct SessionRelease {
    void operator()(inlay_session* handle) const { inlay_session_release(handle); }
};
struct ErrorRelease {
    void operator()(inlay_error* error) const { inlay_error_release(error); }
};
using EnginePtr = std::unique_ptr<inlay_engine, EngineRelease>;
using CachePtr = std::unique_ptr<inlay_cache, CacheRelease>;
using SessionPtr = std::unique_ptr<inlay_session, SessionRelease>;
using ErrorPtr = std::unique_ptr<inlay_error, ErrorRelease>;

// A result of a call: its status and its sentence.
struct Outcome {
    int32_t status = 0;
    std::string sentence;
};

// Calls call(&error) and checks that status and error object agree.
template <typename Call>
Outcome outcome_of(const Call& call) {
    inlay_error* raw = nullptr;
    const int32_t status = call(&raw);
    const ErrorPtr error(raw);
    CHECK((status < 0) == (error != nullptr));
    CHECK(inlay_error_code(error.get()) == (status < 0 ? status : INLAY_OK));
    return {status, inlay_error_message(error.get())};
}

inline inlay_engine_options engine_options(uint32_t n_threads = 2) {
    inlay_engine_options options{};
    options.struct_size = sizeof options;
    options.n_threads = n_threads;
    return options;
}

inline EnginePtr open_model(const std::string& path, const inlay_engine_options& options = engine_options()) {
    inlay_engine* engine = nullptr;
    const Outcome outcome = outcome_of(
        [&](inlay_error** error) { return inlay_engine_open(path.data(), path.size(), &options, &engine, error); });
    INFO(outcome.sentence);
    REQUIRE(outcome.status == INLAY_OK);
    return EnginePtr(engine);
}

inline EnginePtr open_tiny(uint32_t flags = 0, uint32_t n_threads = 2) {
    inlay_engine_options options{};
    options.struct_size = sizeof options;
    options.flags = flags;
    options.n_threads = n_threads;
    inlay_engine* engine = nullptr;
    const std::string path = tiny_model();
    REQUIRE(inlay_engine_open(path.data(), path.size(), &options, &engine, nullptr) == INLAY_OK);
    return EnginePtr(engine);
}

inline CachePtr create_cache(const inlay_engine* engine, uint64_t bytes = 0, uint32_t flags = 0) {
    inlay_cache_options options{};
    options.struct_size = sizeof options;
    options.bytes = bytes;
    options.flags = flags;
    inlay_cache* cache = nullptr;
    REQUIRE(inlay_cache_create(engine, &options, &cache, nullptr) == INLAY_OK);
    return CachePtr(cache);
}

inline SessionPtr create_session(const inlay_cache* cache, uint32_t context_tokens = 0) {
    inlay_session_options options{};
    options.struct_size = sizeof options;
    options.context_tokens = context_tokens;
    inlay_session* session = nullptr;
    REQUIRE(inlay_session_create(cache, &options, &session, nullptr) == INLAY_OK);
    return SessionPtr(session);
}

inline void append(inlay_session* session, const std::vector<int32_t>& tokens) {
    REQUIRE(inlay_session_append_tokens(session, tokens.data(), tokens.size(), nullptr) == INLAY_OK);
}

inline void set_limit(inlay_session* session, uint64_t max_new_tokens) {
    inlay_generation_options options{};
    options.struct_size = sizeof options;
    options.flags = INLAY_GENERATION_IGNORE_END;
    options.max_new_tokens = max_new_tokens;
    REQUIRE(inlay_session_set_generation(session, &options, nullptr) == INLAY_OK);
}

inline void sample_with(const SessionPtr& session, uint64_t seed) {
    inlay_generation_options options{};
    options.struct_size = sizeof options;
    options.flags = INLAY_GENERATION_IGNORE_END;
    options.temperature = 1;
    options.seed = seed;
    REQUIRE(inlay_session_set_generation(session.get(), &options, nullptr) == INLAY_OK);
}

inline inlay_session_stats stats_of(const SessionPtr& session) {
    inlay_session_stats stats{};
    stats.struct_size = sizeof stats;
    REQUIRE(inlay_session_get_stats(session.get(), &stats, nullptr) == INLAY_OK);
    return stats;
}

inline inlay_cache_stats stats_of(const CachePtr& cache) {
    inlay_cache_stats stats{};
    stats.struct_size = sizeof stats;
    REQUIRE(inlay_cache_get_stats(cache.get(), &stats, nullptr) == INLAY_OK);
    return stats;
}

inline uint64_t length_of(const inlay_session* session) {
    uint64_t n_tokens = 0;
    REQUIRE(inlay_session_length(session, &n_tokens, nullptr) == INLAY_OK);
    return n_tokens;
}

// The logits of all rows of a text that the session does not have yet; empty when a call fails. Asserts nothing, so
// that any thread may call it.
inline std::vector<float> forward_logits(inlay_session* session) {
    std::vector<int32_t> tokens(40);
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * 37 % 300);
    const float* logits = nullptr;
    size_t n_rows = 0;
    size_t n_vocabulary = 0;
    if (inlay_session_forward(session, tokens.data(), tokens.size(), 0, nullptr) != INLAY_OK) return {};
    if (inlay_session_logits(session, &logits, &n_rows, &n_vocabulary, nullptr) != INLAY_OK) return {};
    return {logits, logits + n_rows * n_vocabulary};
}
inline std::vector<float> logits_of(inlay_session* session) {
    std::vector<float> logits = forward_logits(session);
    REQUIRE(!logits.empty());
    return logits;
}
inline std::vector<float> logits_of(const inlay_engine* engine) {
    const CachePtr cache = create_cache(engine, 4 << 20);
    return logits_of(create_session(cache.get()).get());
}

inline inlay_chunk empty_chunk() {
    inlay_chunk chunk{};
    chunk.struct_size = sizeof chunk;
    return chunk;
}

}  // namespace inlay::test
