// Sessions and pins saved to bytes and loaded from them, and the places where that is tried.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "model_path.h"
#include "saved_bytes.h"

namespace inlay::test {

inline std::string saved(inlay_session* session) {
    std::string bytes;
    const inlay_save_callback write = [](void* user, const void* data, size_t size) -> int32_t {
        static_cast<std::string*>(user)->append(static_cast<const char*>(data), size);
        return 0;
    };
    REQUIRE(inlay_session_save(session, write, &bytes, nullptr) == INLAY_OK);
    return bytes;
}

struct Model {
    std::string_view path;
    int32_t kv_type;
};
inline const Model kModels[] = {{"tiny/llama/llama.f16.gguf", INLAY_KV_F16},
                                {"tiny/llama/llama.f16.gguf", INLAY_KV_F32},
                                {"tiny/gemma3_text/gemma3_text.f32.gguf", INLAY_KV_F16},
                                {"tiny/gemma3_text/gemma3_text.f32.gguf", INLAY_KV_F32},
                                {"tiny/llama/llama.f16.gguf", INLAY_KV_BF16},
                                {"tiny/llama/llama.f16.gguf", INLAY_KV_INT8},
                                {"tiny/llama/llama.f16.gguf", INLAY_KV_INT4},
                                {"tiny/gemma3_text/gemma3_text.f32.gguf", INLAY_KV_INT8},
                                {"tiny/gemma3_text/gemma3_text.f32.gguf", INLAY_KV_INT4}};

// An engine and a cache of its own, as a new process has.
struct Place {
    EnginePtr engine;
    CachePtr cache;

    explicit Place(const Model& model, int32_t compute = INLAY_COMPUTE_AUTO, uint64_t bytes = 0,
                   int32_t when_full = INLAY_WHEN_FULL_FAIL, uint32_t flags = 0) {
        inlay_engine_options options = engine_options();
        options.compute = compute;
        engine = open_model((data_dir() / model.path).string(), options);
        inlay_cache_options cache_options{};
        cache_options.struct_size = sizeof cache_options;
        cache_options.key_type = cache_options.value_type = model.kv_type;
        cache_options.bytes = bytes;
        cache_options.when_full = when_full;
        cache_options.flags = flags;
        inlay_cache* made = nullptr;
        REQUIRE(inlay_cache_create(engine.get(), &cache_options, &made, nullptr) == INLAY_OK);
        cache.reset(made);
    }
    SessionPtr session(uint32_t context_tokens = 0) const { return create_session(cache.get(), context_tokens); }
    inlay_cache_stats stats() const { return stats_of(cache); }
};

inline std::vector<int32_t> tokens_of(size_t n, size_t seed) {
    std::vector<int32_t> tokens(n);
    for (size_t i = 0; i < n; ++i) tokens[i] = static_cast<int32_t>((seed + i * i * 7) % 250);
    return tokens;
}

// What a session does next: tokens, the text they give and the last row of logits.
struct Continuation {
    std::vector<int32_t> tokens;
    std::string text;
    std::vector<float> logits;

    bool operator==(const Continuation&) const = default;
};

inline Continuation go_on(const SessionPtr& session, size_t n) {
    Continuation result;
    while (result.tokens.size() < n) {
        inlay_chunk chunk = empty_chunk();
        const int32_t status = inlay_session_next(session.get(), &chunk, nullptr);
        REQUIRE(status >= 0);
        result.tokens.insert(result.tokens.end(), chunk.tokens, chunk.tokens + chunk.n_tokens);
        result.text.append(chunk.text, chunk.text_size);
        if (status == INLAY_END) break;
    }
    const float* logits = nullptr;
    size_t n_rows = 0, n_vocabulary = 0;
    REQUIRE(inlay_session_logits(session.get(), &logits, &n_rows, &n_vocabulary, nullptr) == INLAY_OK);
    result.logits.assign(logits, logits + n_rows * n_vocabulary);
    return result;
}

struct ByteReader {
    const std::string& bytes;
    size_t at = 0;

    static int32_t read(void* user, void* buffer, size_t size, size_t* n_read) {
        auto& reader = *static_cast<ByteReader*>(user);
        *n_read = std::min(size, reader.bytes.size() - reader.at);
        std::memcpy(buffer, reader.bytes.data() + reader.at, *n_read);
        reader.at += *n_read;
        return 0;
    }
};

inline inlay_load_result empty_result() {
    inlay_load_result result{};
    result.struct_size = sizeof result;
    return result;
}

inline Outcome load(inlay_session* session, const std::string& bytes, uint32_t flags = 0,
                    inlay_load_result* result = nullptr) {
    ByteReader reader{bytes};
    return outcome_of([&](inlay_error** error) {
        return inlay_session_load(session, flags, ByteReader::read, &reader, result, error);
    });
}

inline std::string saved_pins(const inlay_cache* cache) {
    std::string bytes;
    const inlay_save_callback write = [](void* user, const void* data, size_t size) -> int32_t {
        static_cast<std::string*>(user)->append(static_cast<const char*>(data), size);
        return 0;
    };
    REQUIRE(inlay_cache_save(cache, write, &bytes, nullptr) == INLAY_OK);
    return bytes;
}

inline Outcome load_pins(const inlay_cache* cache, const std::string& bytes, inlay_cache_load_result* result = nullptr,
                         uint32_t flags = INLAY_LOAD_TRUSTED) {
    ByteReader reader{bytes};
    return outcome_of(
        [&](inlay_error** error) { return inlay_cache_load(cache, flags, ByteReader::read, &reader, result, error); });
}

// Pins tokens that a session computes first.
inline uint64_t pin(const Place& place, const std::vector<int32_t>& tokens, uint64_t salt = 0) {
    inlay_session_options options{};
    options.struct_size = sizeof options;
    options.context_tokens = 4096;
    options.cache_salt = salt;
    inlay_session* raw = nullptr;
    REQUIRE(inlay_session_create(place.cache.get(), &options, &raw, nullptr) == INLAY_OK);
    const SessionPtr session(raw);
    append(session.get(), tokens);
    go_on(session, 1);
    uint64_t number = 0, n_held = 0;
    REQUIRE(inlay_cache_pin(place.cache.get(), tokens.data(), tokens.size(), salt, &number, &n_held, nullptr) ==
            INLAY_OK);
    REQUIRE(n_held == tokens.size() / 16 * 16);
    return number;
}

}  // namespace inlay::test
