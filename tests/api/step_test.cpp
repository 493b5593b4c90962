// inlay_step: many sessions in one thread.
#include "model_path.h"

using namespace inlay::test;

namespace {

std::vector<int32_t> tokens_alone(const inlay_cache* cache, const std::vector<int32_t>& prompt, uint64_t n) {
    const SessionPtr session = create_session(cache);
    set_limit(session.get(), n);
    append(session.get(), prompt);
    std::vector<int32_t> tokens;
    inlay_chunk chunk = empty_chunk();
    int32_t status = INLAY_OK;
    while (status != INLAY_END) {
        status = inlay_session_next(session.get(), &chunk, nullptr);
        REQUIRE(status >= 0);
        tokens.insert(tokens.end(), chunk.tokens, chunk.tokens + chunk.n_tokens);
    }
    return tokens;
}

uint64_t steps_of(const inlay_engine* engine) {
    inlay_engine_info info{};
    info.struct_size = sizeof info;
    REQUIRE(inlay_engine_get_info(engine, &info, nullptr) == INLAY_OK);
    return info.n_steps;
}

// One call, with the arrays that it fills.
struct Step {
    std::vector<inlay_session*> sessions;
    std::vector<inlay_chunk> chunks;
    std::vector<int32_t> statuses;
    std::vector<inlay_error*> errors;

    explicit Step(std::vector<inlay_session*> which)
        : sessions(std::move(which)),
          chunks(sessions.size()),
          statuses(sessions.size(), 77),
          errors(sessions.size(), nullptr) {}
    ~Step() { release_errors(); }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

    void run() {
        release_errors();
        REQUIRE(inlay_step(sessions.data(), sessions.size(), chunks.data(), sizeof(inlay_chunk), statuses.data(),
                           errors.data(), nullptr) == INLAY_OK);
    }
    void release_errors() {
        for (inlay_error*& error : errors) inlay_error_release(std::exchange(error, nullptr));
    }
};

}  // namespace

TEST_CASE("one thread steps many sessions, and each gets the tokens that it gets alone") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = create_cache(engine.get());
    std::vector<SessionPtr> sessions;
    std::vector<std::vector<int32_t>> alone, together(5);
    std::vector<inlay_session*> handles;
    for (int32_t i = 0; i < 5; ++i) {
        const std::vector<int32_t> prompt(static_cast<size_t>(3 + 20 * i), 40 + i);
        const auto n = static_cast<uint64_t>(4 + 3 * i);
        alone.push_back(tokens_alone(cache.get(), prompt, n));
        sessions.push_back(create_session(cache.get()));
        set_limit(sessions.back().get(), n);
        append(sessions.back().get(), prompt);
        handles.push_back(sessions.back().get());
    }
    const uint64_t n_before = steps_of(engine.get());
    Step step(handles);
    size_t n_ended = 0;
    size_t n_calls = 0;
    while (n_ended < 5) {
        step.run();
        ++n_calls;
        n_ended = 0;
        for (size_t i = 0; i < 5; ++i) {
            CHECK(step.chunks[i].struct_size == sizeof(inlay_chunk));
            together[i].insert(together[i].end(), step.chunks[i].tokens,
                               step.chunks[i].tokens + step.chunks[i].n_tokens);
            n_ended += step.statuses[i] == INLAY_END;
        }
    }
    CHECK(together == alone);
    CHECK(n_calls == 16);  // the longest text has as many tokens
    CHECK(steps_of(engine.get()) - n_before == 16);
}

TEST_CASE("one session's error stays its own") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = create_cache(engine.get());
    const SessionPtr good = create_session(cache.get());
    const SessionPtr empty = create_session(cache.get());
    append(good.get(), {1, 2, 3});
    Step step({empty.get(), good.get(), good.get()});
    step.run();
    CHECK(step.statuses == std::vector<int32_t>{INLAY_E_STATE, INLAY_OK, INLAY_E_BUSY});
    CHECK(inlay_error_code(step.errors[0]) == INLAY_E_STATE);
    CHECK_THAT(inlay_error_message(step.errors[0]), Catch::Contains("sessions[0]") && Catch::Contains("empty"));
    CHECK_THAT(inlay_error_message(step.errors[2]), Catch::Contains("sessions[2]"));
    CHECK(step.errors[1] == nullptr);
    CHECK(step.chunks[1].n_tokens == 1);
    CHECK(step.chunks[0].n_tokens == 0);
    CHECK(length_of(good.get()) == 4);
    // Without a place for errors too.
    REQUIRE(inlay_step(step.sessions.data(), 3, step.chunks.data(), sizeof(inlay_chunk), step.statuses.data(), nullptr,
                       nullptr) == INLAY_OK);
    CHECK(step.statuses[0] == INLAY_E_STATE);
}

TEST_CASE("a long prompt takes several steps while the others go on") {
    inlay_engine_options options{};
    options.struct_size = sizeof options;
    options.max_step_tokens = 10;
    inlay_engine* raw = nullptr;
    REQUIRE(inlay_engine_open(tiny_model().c_str(), SIZE_MAX, &options, &raw, nullptr) == INLAY_OK);
    const EnginePtr engine(raw);
    const CachePtr cache = create_cache(engine.get(), 0, INLAY_CACHE_NO_REUSE);
    const SessionPtr prompt = create_session(cache.get());
    const SessionPtr text = create_session(cache.get());
    append(text.get(), {5});
    append(prompt.get(), std::vector<int32_t>(30, 9));
    Step step({prompt.get(), text.get()});
    std::vector<int32_t> of_prompt;
    for (int i = 0; i < 4; ++i) {
        step.run();
        of_prompt.push_back(step.statuses[0]);
        CHECK(step.statuses[1] == INLAY_OK);
    }
    CHECK(of_prompt == std::vector<int32_t>{INLAY_MORE, INLAY_MORE, INLAY_MORE, INLAY_OK});
}

TEST_CASE("sessions of two engines may be stepped together") {
    const EnginePtr engines[] = {open_tiny(), open_tiny()};
    const CachePtr caches[] = {create_cache(engines[0].get()), create_cache(engines[1].get())};
    const SessionPtr sessions[] = {create_session(caches[0].get()), create_session(caches[1].get()),
                                   create_session(caches[0].get())};
    for (const SessionPtr& session : sessions) append(session.get(), {8, 9});
    Step step({sessions[0].get(), sessions[1].get(), sessions[2].get()});
    step.run();
    CHECK(step.statuses == std::vector<int32_t>(3, INLAY_OK));
    CHECK(step.chunks[0].tokens[0] == step.chunks[1].tokens[0]);
    CHECK(steps_of(engines[0].get()) == 1);
    CHECK(steps_of(engines[1].get()) == 1);
}

TEST_CASE("chunks may be larger or smaller than this library's") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = create_cache(engine.get());
    const SessionPtr sessions[] = {create_session(cache.get()), create_session(cache.get())};
    inlay_session* handles[] = {sessions[0].get(), sessions[1].get()};
    for (const SessionPtr& session : sessions) {
        set_limit(session.get(), 0);
        append(session.get(), {8, 9});
    }
    int32_t statuses[2];
    alignas(inlay_chunk) unsigned char bytes[2 * (sizeof(inlay_chunk) + 16)];
    for (const size_t chunk_size : {sizeof(inlay_chunk) + 16, size_t{24}}) {
        std::memset(bytes, 0xAB, sizeof bytes);
        REQUIRE(inlay_step(handles, 2, reinterpret_cast<inlay_chunk*>(bytes), chunk_size, statuses, nullptr, nullptr) ==
                INLAY_OK);
        uint32_t sizes[2];
        size_t n_tokens = 0;
        std::memcpy(&sizes[0], bytes, 4);
        std::memcpy(&sizes[1], bytes + chunk_size, 4);
        std::memcpy(&n_tokens, bytes + chunk_size + offsetof(inlay_chunk, n_tokens), sizeof n_tokens);
        CHECK(sizes[0] == chunk_size);
        CHECK(sizes[1] == chunk_size);
        CHECK(n_tokens == 1);
        if (2 * chunk_size < sizeof bytes) CHECK(bytes[2 * chunk_size] == 0xAB);
    }
}

TEST_CASE("inlay_step refuses arguments that it can not use") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = create_cache(engine.get());
    const SessionPtr session = create_session(cache.get());
    append(session.get(), {1});
    inlay_session* handles[] = {session.get(), nullptr};
    inlay_chunk chunks[2];
    int32_t statuses[2] = {9, 9};
    const auto refused = [&](const char* word, inlay_session* const* s, inlay_chunk* c, size_t size, int32_t* st) {
        const Outcome outcome =
            outcome_of([&](inlay_error** error) { return inlay_step(s, 2, c, size, st, nullptr, error); });
        CHECK(outcome.status == INLAY_E_INVALID_ARGUMENT);
        CHECK_THAT(outcome.sentence, Catch::Contains(word));
    };
    refused("sessions is NULL", nullptr, chunks, sizeof(inlay_chunk), statuses);
    refused("sessions[1] is NULL", handles, chunks, sizeof(inlay_chunk), statuses);
    refused("chunks is NULL", handles, nullptr, sizeof(inlay_chunk), statuses);
    refused("chunk_size", handles, chunks, 4, statuses);
    refused("chunk_size", handles, chunks, 33, statuses);
    const Outcome too_many = outcome_of([&](inlay_error** error) {
        return inlay_step(handles, SIZE_MAX, chunks, sizeof(inlay_chunk), statuses, nullptr, error);
    });
    CHECK(too_many.status == INLAY_E_INVALID_ARGUMENT);
    CHECK_THAT(too_many.sentence, Catch::Contains("n_sessions"));
    refused("statuses is NULL", handles, chunks, sizeof(inlay_chunk), nullptr);
    CHECK(statuses[0] == 0);
    CHECK(length_of(session.get()) == 1);
    CHECK(inlay_step(nullptr, 0, nullptr, 0, nullptr, nullptr, nullptr) == INLAY_OK);
}
