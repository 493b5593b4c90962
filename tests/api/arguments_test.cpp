// Wrong arguments: each call returns a status and a sentence that names the argument, and the handles go on working.
#include <limits>

#include "model_path.h"

using namespace inlay::test;

namespace {

void check_refused(const Outcome& outcome, int32_t status, const std::string& word) {
    CAPTURE(outcome.sentence);
    CHECK(outcome.status == status);
    CHECK_THAT(outcome.sentence, Catch::Contains(word));
}

template <typename Call>
void refuses(int32_t status, const std::string& word, const Call& call) {
    check_refused(outcome_of(call), status, word);
}

}  // namespace

TEST_CASE("opening names what is wrong") {
    inlay_engine* engine = nullptr;
    const std::string path = tiny_model();
    const auto open_with = [&](const inlay_engine_options& options) {
        return outcome_of(
            [&](inlay_error** error) { return inlay_engine_open(path.c_str(), SIZE_MAX, &options, &engine, error); });
    };
    inlay_engine_options options{};
    options.struct_size = sizeof options;
    refuses(INLAY_E_INVALID_ARGUMENT, "path is NULL",
            [&](inlay_error** e) { return inlay_engine_open(nullptr, SIZE_MAX, nullptr, &engine, e); });
    refuses(INLAY_E_INVALID_ARGUMENT, "path is empty",
            [&](inlay_error** e) { return inlay_engine_open("", 0, nullptr, &engine, e); });
    refuses(INLAY_E_INVALID_ARGUMENT, "engine",
            [&](inlay_error** e) { return inlay_engine_open(path.c_str(), SIZE_MAX, nullptr, nullptr, e); });
    refuses(INLAY_E_IO, "no/such/file",
            [&](inlay_error** e) { return inlay_engine_open("no/such/file", SIZE_MAX, nullptr, &engine, e); });
    refuses(INLAY_E_IO, "/tmp", [&](inlay_error** e) { return inlay_engine_open("/tmp", 4, nullptr, &engine, e); });
    refuses(INLAY_E_FORMAT, "", [&](inlay_error** e) {
        return inlay_engine_open((data_dir() / "README.md").string().c_str(), SIZE_MAX, nullptr, &engine, e);
    });
    options.n_threads = 257;
    check_refused(open_with(options), INLAY_E_INVALID_ARGUMENT, "n_threads");
    options.n_threads = 0;
    options.compute = 99;
    check_refused(open_with(options), INLAY_E_INVALID_ARGUMENT, "compute");
    options.compute = 0;
    options.instruction_set = -1;
    check_refused(open_with(options), INLAY_E_INVALID_ARGUMENT, "instruction_set");
    options.instruction_set = 0;
    options.max_step_tokens = UINT32_MAX;
    check_refused(open_with(options), INLAY_E_INVALID_ARGUMENT, "max_step_tokens");
    options.max_step_tokens = 0;
    options.flags = 0x80000000u;
    check_refused(open_with(options), INLAY_E_UNSUPPORTED, "flags");
    options.flags = 0;
    options.struct_size = 0;
    check_refused(open_with(options), INLAY_E_INVALID_ARGUMENT, "struct_size");
    options.struct_size = sizeof options;
    options.progress = [](void*, uint64_t, uint64_t) -> int32_t { return 1; };
    check_refused(open_with(options), INLAY_E_CANCELLED, "progress");
    CHECK(engine == nullptr);
}

TEST_CASE("an engine has the instructions that were asked for, or says that they are missing") {
    const std::string path = tiny_model();
    for (const int32_t wanted :
         {INLAY_INSTRUCTIONS_PORTABLE, INLAY_INSTRUCTIONS_AVX2, INLAY_INSTRUCTIONS_AVX512, INLAY_INSTRUCTIONS_NEON}) {
        CAPTURE(wanted);
        inlay_engine* engine = nullptr;
        inlay_engine_options options{};
        options.struct_size = sizeof options;
        options.instruction_set = wanted;
        const Outcome outcome = outcome_of(
            [&](inlay_error** error) { return inlay_engine_open(path.c_str(), SIZE_MAX, &options, &engine, error); });
#if defined(__aarch64__)
        const bool is_of_another_machine = wanted == INLAY_INSTRUCTIONS_AVX2 || wanted == INLAY_INSTRUCTIONS_AVX512;
#else
        const bool is_of_another_machine = wanted == INLAY_INSTRUCTIONS_NEON;
#endif
        if (is_of_another_machine || !engine) {
            REQUIRE(wanted != INLAY_INSTRUCTIONS_PORTABLE);
            check_refused(outcome, INLAY_E_UNSUPPORTED, "instruction_set");
            CHECK(engine == nullptr);
            continue;
        }
        inlay_engine_info info{};
        info.struct_size = sizeof info;
        CHECK(inlay_engine_get_info(engine, &info, nullptr) == INLAY_OK);
        CHECK(info.instruction_set == wanted);
        inlay_engine_release(engine);
    }
}

TEST_CASE("an engine without weights makes no cache") {
    const EnginePtr engine = open_tiny(INLAY_ENGINE_VOCABULARY_ONLY);
    inlay_cache* cache = nullptr;
    refuses(INLAY_E_STATE, "VOCABULARY_ONLY",
            [&](inlay_error** e) { return inlay_cache_create(engine.get(), nullptr, &cache, e); });
    size_t needed = 0;
    CHECK(inlay_tokenize(engine.get(), "hello", 5, 0, nullptr, 0, &needed, nullptr) == INLAY_OK);
    CHECK(needed > 0);
}

TEST_CASE("text calls name what is wrong") {
    const EnginePtr engine = open_tiny();
    int32_t tokens[4];
    char text[64];
    size_t needed = 77;
    refuses(INLAY_E_INVALID_ARGUMENT, "engine",
            [&](inlay_error** e) { return inlay_tokenize(nullptr, "a", 1, 0, tokens, 4, &needed, e); });
    CHECK(needed == 0);
    refuses(INLAY_E_INVALID_ARGUMENT, "needed",
            [&](inlay_error** e) { return inlay_tokenize(engine.get(), "a", 1, 0, tokens, 4, nullptr, e); });
    refuses(INLAY_E_INVALID_ARGUMENT, "text",
            [&](inlay_error** e) { return inlay_tokenize(engine.get(), nullptr, 1, 0, tokens, 4, &needed, e); });
    refuses(INLAY_E_UNSUPPORTED, "flags",
            [&](inlay_error** e) { return inlay_tokenize(engine.get(), "a", 1, 64, tokens, 4, &needed, e); });
    refuses(INLAY_E_BUFFER_TOO_SMALL, "capacity", [&](inlay_error** e) {
        return inlay_tokenize(engine.get(), "a long text of many letters", SIZE_MAX, 0, tokens, 1, &needed, e);
    });
    CHECK(needed > 1);
    CHECK(inlay_tokenize(engine.get(), nullptr, 0, 0, nullptr, 0, &needed, nullptr) == INLAY_OK);
    CHECK(needed == 0);

    tokens[0] = -1;
    refuses(INLAY_E_INVALID_ARGUMENT, "tokens[0]",
            [&](inlay_error** e) { return inlay_detokenize(engine.get(), tokens, 1, 0, text, 64, &needed, e); });
    refuses(INLAY_E_INVALID_ARGUMENT, "tokens",
            [&](inlay_error** e) { return inlay_detokenize(engine.get(), nullptr, 1, 0, text, 64, &needed, e); });
    refuses(INLAY_E_INVALID_ARGUMENT, "token", [&](inlay_error** e) {
        return inlay_token_text(engine.get(), std::numeric_limits<int32_t>::max(), 0, text, 64, &needed, e);
    });
    int32_t token = 5;
    refuses(INLAY_E_INVALID_ARGUMENT, "which",
            [&](inlay_error** e) { return inlay_special_token(engine.get(), 99, &token, e); });
    refuses(INLAY_E_INVALID_ARGUMENT, "token",
            [&](inlay_error** e) { return inlay_special_token(engine.get(), INLAY_SPECIAL_BOS, nullptr, e); });
    CHECK(inlay_token_is_end(engine.get(), -7) == 0);
    CHECK(inlay_token_is_end(nullptr, 0) == 0);
    refuses(INLAY_E_INVALID_ARGUMENT, "index",
            [&](inlay_error** e) { return inlay_engine_metadata_key(engine.get(), SIZE_MAX, text, 64, &needed, e); });
    CHECK(inlay_engine_metadata_count(nullptr) == 0);
}

TEST_CASE("cache calls name what is wrong") {
    const EnginePtr engine = open_tiny();
    inlay_cache* cache = nullptr;
    inlay_cache_options options{};
    options.struct_size = sizeof options;
    const auto create_with = [&] {
        return outcome_of(
            [&](inlay_error** error) { return inlay_cache_create(engine.get(), &options, &cache, error); });
    };
    options.bytes = 1;
    check_refused(create_with(), INLAY_E_INVALID_ARGUMENT, "bytes");
    options.bytes = UINT64_MAX;
    CHECK(create_with().status < 0);
    options.bytes = 0;
    options.key_type = 77;
    check_refused(create_with(), INLAY_E_INVALID_ARGUMENT, "key_type");
    options.key_type = 0;
    options.value_type = -1;
    check_refused(create_with(), INLAY_E_INVALID_ARGUMENT, "value_type");
    options.value_type = 0;
    options.flags = 128;
    check_refused(create_with(), INLAY_E_UNSUPPORTED, "flags");
    uint64_t bytes = 9;
    refuses(INLAY_E_INVALID_ARGUMENT, "n_tokens",
            [&](inlay_error** e) { return inlay_cache_bytes_for(engine.get(), nullptr, UINT64_MAX, &bytes, e); });
    CHECK(bytes == 0);
    refuses(INLAY_E_INVALID_ARGUMENT, "stats",
            [&](inlay_error** e) { return inlay_cache_get_stats(nullptr, nullptr, e); });
    refuses(INLAY_E_INVALID_ARGUMENT, "cache", [&](inlay_error** e) { return inlay_cache_clear(nullptr, e); });
}

TEST_CASE("session calls name what is wrong") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = create_cache(engine.get());
    const SessionPtr session = create_session(cache.get());
    inlay_session* s = session.get();
    inlay_chunk chunk = empty_chunk();
    const int32_t tokens[] = {1, 2, 384};
    refuses(INLAY_E_STATE, "append", [&](inlay_error** e) { return inlay_session_next(s, &chunk, e); });
    refuses(INLAY_E_STATE, "logits", [&](inlay_error** e) {
        const float* logits = nullptr;
        return inlay_session_logits(s, &logits, nullptr, nullptr, e);
    });
    refuses(INLAY_E_INVALID_ARGUMENT, "tokens[2]",
            [&](inlay_error** e) { return inlay_session_append_tokens(s, tokens, 3, e); });
    refuses(INLAY_E_INVALID_ARGUMENT, "n_tokens",
            [&](inlay_error** e) { return inlay_session_append_tokens(s, tokens, SIZE_MAX, e); });
    refuses(INLAY_E_INVALID_ARGUMENT, "session",
            [&](inlay_error** e) { return inlay_session_append_tokens(nullptr, tokens, 1, e); });
    refuses(INLAY_E_INVALID_ARGUMENT, "chunk", [&](inlay_error** e) { return inlay_session_next(s, nullptr, e); });
    refuses(INLAY_E_INVALID_ARGUMENT, "n_tokens", [&](inlay_error** e) { return inlay_session_truncate(s, 1, e); });
    refuses(INLAY_E_INVALID_ARGUMENT, "n_tokens",
            [&](inlay_error** e) { return inlay_session_forward(s, tokens, 0, 0, e); });
    refuses(INLAY_E_INVALID_ARGUMENT, "n_tokens",
            [&](inlay_error** e) { return inlay_session_forward(s, tokens, 513, 0, e); });
    refuses(INLAY_E_INVALID_ARGUMENT, "logits_from",
            [&](inlay_error** e) { return inlay_session_forward(s, tokens, 2, 3, e); });
    refuses(INLAY_E_INVALID_ARGUMENT, "tokens",
            [&](inlay_error** e) { return inlay_session_forward(s, nullptr, 2, 0, e); });
    size_t needed = 0;
    refuses(INLAY_E_INVALID_ARGUMENT, "first",
            [&](inlay_error** e) { return inlay_session_tokens(s, 1, nullptr, 0, &needed, e); });

    inlay_generation_options options{};
    options.struct_size = sizeof options;
    const auto set = [&] {
        return outcome_of([&](inlay_error** error) { return inlay_session_set_generation(s, &options, error); });
    };
    for (float wrong :
         {-1.0f, 101.0f, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        options.temperature = wrong;
        check_refused(set(), INLAY_E_INVALID_ARGUMENT, "temperature");
        options.temperature = 0;
        options.top_p = wrong;
        check_refused(set(), INLAY_E_INVALID_ARGUMENT, "top_p");
        options.top_p = 0;
        options.min_p = wrong;
        check_refused(set(), INLAY_E_INVALID_ARGUMENT, "min_p");
        options.min_p = 0;
    }
    options.flags = 2;
    check_refused(set(), INLAY_E_UNSUPPORTED, "flags");

    append(s, std::vector<int32_t>(511, 1));
    refuses(INLAY_E_STATE, "wait to be computed",
            [&](inlay_error** e) { return inlay_session_forward(s, tokens, 2, 0, e); });
    CHECK(length_of(s) == 511);
    CHECK(inlay_session_forward(s, tokens, 1, 0, nullptr) == INLAY_OK);
    CHECK(inlay_session_truncate(s, 3, nullptr) == INLAY_OK);
    CHECK(inlay_session_next(s, &chunk, nullptr) == INLAY_OK);
    inlay_session_cancel(nullptr);
    inlay_session_release(nullptr);
    inlay_error_release(nullptr);
}

TEST_CASE("an error object is overwritten on entry, and may be left out") {
    auto* error = reinterpret_cast<inlay_error*>(1);
    CHECK(inlay_check_abi(INLAY_VERSION_MAJOR, INLAY_VERSION_MINOR, &error) == INLAY_OK);
    CHECK(error == nullptr);
    CHECK(inlay_check_abi(INLAY_VERSION_MAJOR + 1, 0, nullptr) == INLAY_E_UNSUPPORTED);
    refuses(INLAY_E_UNSUPPORTED, "built for version",
            [&](inlay_error** e) { return inlay_check_abi(INLAY_VERSION_MAJOR, INLAY_VERSION_MINOR + 1, e); });
    CHECK(std::string(inlay_status_name(INLAY_E_CACHE_FULL)) == "INLAY_E_CACHE_FULL");
    CHECK(std::string(inlay_status_name(12345)) == "INLAY_UNKNOWN");
}
