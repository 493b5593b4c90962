// Sessions through the contract: what a call returns, what it leaves behind.
#include <algorithm>
#include <atomic>
#include <thread>

#include "model_path.h"
#include "tests/npy.h"
#include "tests/temporary_directory.h"

using namespace inlay::test;

namespace {

const std::vector<int32_t> kPrompt = {10, 20, 30, 40, 50, 60, 70};

std::vector<int32_t> run(inlay_session* session) {
    std::vector<int32_t> tokens;
    const auto collect = [](void* user, const inlay_chunk* chunk) -> int32_t {
        auto& all = *static_cast<std::vector<int32_t>*>(user);
        all.insert(all.end(), chunk->tokens, chunk->tokens + chunk->n_tokens);
        return 0;
    };
    inlay_chunk last = empty_chunk();
    REQUIRE(inlay_session_run(session, collect, &tokens, &last, nullptr) == INLAY_END);
    return tokens;
}

}  // namespace

TEST_CASE("next delivers tokens until the limit and then the same end again") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = create_cache(engine.get());
    const SessionPtr session = create_session(cache.get());
    set_limit(session.get(), 3);
    append(session.get(), kPrompt);
    inlay_chunk chunk = empty_chunk();
    for (int i = 0; i < 2; ++i) {
        REQUIRE(inlay_session_next(session.get(), &chunk, nullptr) == INLAY_OK);
        CHECK(chunk.n_tokens == 1);
        CHECK(chunk.finish_reason == INLAY_FINISH_NONE);
    }
    REQUIRE(inlay_session_next(session.get(), &chunk, nullptr) == INLAY_END);
    CHECK(chunk.n_tokens == 1);
    CHECK(chunk.finish_reason == INLAY_FINISH_LENGTH);
    REQUIRE(inlay_session_next(session.get(), &chunk, nullptr) == INLAY_END);
    CHECK(chunk.n_tokens == 0);
    CHECK(chunk.finish_reason == INLAY_FINISH_LENGTH);
    CHECK(length_of(session.get()) == kPrompt.size() + 3);

    append(session.get(), {5});
    CHECK(run(session.get()).size() == 3);
}

TEST_CASE("a token that ends the text ends it, is not part of it, and may be ignored") {
    const CachePtr plain_cache = create_cache(open_tiny().get());
    const SessionPtr plain = create_session(plain_cache.get());
    set_limit(plain.get(), 10);
    append(plain.get(), kPrompt);
    const std::vector<int32_t> tokens = run(plain.get());
    const auto end = static_cast<size_t>(std::find(tokens.begin(), tokens.end(), tokens[5]) - tokens.begin());

    // The same model, whose end-of-sequence token is the one that it generates there.
    std::string model = read_file(tiny_model());
    const std::string key = "tokenizer.ggml.eos_token_id";
    const size_t value = model.find(key) + key.size() + sizeof(uint32_t);  // behind the type
    std::memcpy(model.data() + value, &tokens[5], sizeof tokens[5]);
    const TemporaryDirectory directory;
    const std::string path = directory.write("ends.gguf", model);
    inlay_engine* raw = nullptr;
    REQUIRE(inlay_engine_open(path.c_str(), SIZE_MAX, nullptr, &raw, nullptr) == INLAY_OK);
    const EnginePtr engine(raw);
    CHECK(inlay_token_is_end(engine.get(), tokens[5]) == 1);
    const CachePtr cache = create_cache(engine.get());
    const SessionPtr session = create_session(cache.get());
    append(session.get(), kPrompt);
    inlay_chunk chunk = empty_chunk();
    for (size_t i = 0; i < end; ++i) {
        REQUIRE(inlay_session_next(session.get(), &chunk, nullptr) == INLAY_OK);
        CHECK(chunk.tokens[0] == tokens[i]);
    }
    for (int again = 0; again < 2; ++again) {
        REQUIRE(inlay_session_next(session.get(), &chunk, nullptr) == INLAY_END);
        CHECK(chunk.finish_reason == INLAY_FINISH_STOP);
        CHECK(chunk.n_tokens == 0);
    }
    CHECK(length_of(session.get()) == kPrompt.size() + end);

    const SessionPtr ignoring = create_session(cache.get());
    set_limit(ignoring.get(), 10);
    append(ignoring.get(), kPrompt);
    CHECK(run(ignoring.get()) == tokens);
}

TEST_CASE("after LENGTH a larger limit lets the text go on") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = create_cache(engine.get());
    const SessionPtr session = create_session(cache.get());
    const SessionPtr whole = create_session(cache.get());
    set_limit(whole.get(), 12);
    append(whole.get(), kPrompt);
    const std::vector<int32_t> expected = run(whole.get());
    set_limit(session.get(), 4);
    append(session.get(), kPrompt);
    std::vector<int32_t> tokens = run(session.get());
    CHECK(tokens.size() == 4);
    set_limit(session.get(), 8);
    for (int32_t token : run(session.get())) tokens.push_back(token);
    CHECK(tokens == expected);
}

TEST_CASE("a prompt that fills the context ends at once") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = create_cache(engine.get());
    const SessionPtr session = create_session(cache.get(), 7);
    append(session.get(), kPrompt);
    inlay_chunk chunk = empty_chunk();
    REQUIRE(inlay_session_next(session.get(), &chunk, nullptr) == INLAY_END);
    CHECK(chunk.finish_reason == INLAY_FINISH_LENGTH);
    inlay_session_stats stats{};
    stats.struct_size = sizeof stats;
    REQUIRE(inlay_session_get_stats(session.get(), &stats, nullptr) == INLAY_OK);
    CHECK(stats.n_computed_tokens == 0);
}

TEST_CASE("a prompt longer than a step returns MORE between steps") {
    inlay_engine_options options{};
    options.struct_size = sizeof options;
    options.max_step_tokens = 10;
    inlay_engine* raw = nullptr;
    const std::string path = tiny_model();
    REQUIRE(inlay_engine_open(path.c_str(), SIZE_MAX, &options, &raw, nullptr) == INLAY_OK);
    const EnginePtr engine(raw);
    const CachePtr cache = create_cache(engine.get());
    const SessionPtr session = create_session(cache.get());
    append(session.get(), std::vector<int32_t>(25, 7));
    inlay_chunk chunk = empty_chunk();
    CHECK(inlay_session_next(session.get(), &chunk, nullptr) == INLAY_MORE);
    CHECK(chunk.n_tokens == 0);
    CHECK(inlay_session_next(session.get(), &chunk, nullptr) == INLAY_MORE);
    CHECK(inlay_session_next(session.get(), &chunk, nullptr) == INLAY_OK);
    CHECK(chunk.n_tokens == 1);
}

TEST_CASE("a full context refuses an append and ends a generation") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = create_cache(engine.get());
    const SessionPtr session = create_session(cache.get(), 10);
    append(session.get(), kPrompt);
    const Outcome full = outcome_of(
        [&](inlay_error** error) { return inlay_session_append_tokens(session.get(), kPrompt.data(), 4, error); });
    CHECK(full.status == INLAY_E_CONTEXT_FULL);
    CHECK(length_of(session.get()) == kPrompt.size());
    set_limit(session.get(), 0);
    CHECK(run(session.get()).size() == 3);
    CHECK(length_of(session.get()) == 10);
    REQUIRE(inlay_session_truncate(session.get(), 9, nullptr) == INLAY_OK);
    CHECK(run(session.get()).size() == 1);
}

TEST_CASE("a full cache refuses a step and goes on when there is room") {
    const EnginePtr engine = open_tiny();
    uint64_t bytes = 0;
    REQUIRE(inlay_cache_bytes_for(engine.get(), nullptr, 48, &bytes, nullptr) == INLAY_OK);
    const CachePtr cache = create_cache(engine.get(), bytes);
    const SessionPtr first = create_session(cache.get());
    const SessionPtr second = create_session(cache.get());
    set_limit(first.get(), 1);
    set_limit(second.get(), 1);
    append(first.get(), std::vector<int32_t>(30, 3));
    append(second.get(), std::vector<int32_t>(30, 4));
    CHECK(run(first.get()).size() == 1);
    inlay_chunk chunk = empty_chunk();
    const Outcome full =
        outcome_of([&](inlay_error** error) { return inlay_session_next(second.get(), &chunk, error); });
    CHECK(full.status == INLAY_E_CACHE_FULL);
    CHECK(full.sentence == "the session needs 2 more blocks of the cache and 1 are free or can be freed");
    REQUIRE(inlay_session_reset(first.get(), nullptr) == INLAY_OK);
    CHECK(run(second.get()).size() == 1);
}

TEST_CASE("the same seed draws the same text") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = create_cache(engine.get(), 0, INLAY_CACHE_NO_REUSE);
    const auto text_with = [&](uint64_t seed) {
        const SessionPtr session = create_session(cache.get());
        inlay_generation_options options{};
        options.struct_size = sizeof options;
        options.flags = INLAY_GENERATION_IGNORE_END;
        options.seed = seed;
        options.temperature = 1;
        options.max_new_tokens = 30;
        REQUIRE(inlay_session_set_generation(session.get(), &options, nullptr) == INLAY_OK);
        append(session.get(), kPrompt);
        return run(session.get());
    };
    CHECK(text_with(1) == text_with(1));
    CHECK(text_with(1) != text_with(2));
}

TEST_CASE("text arrives in whole characters and equals the detokenised tokens") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = create_cache(engine.get());
    const SessionPtr session = create_session(cache.get());
    set_limit(session.get(), 100);
    append(session.get(), kPrompt);
    std::string text;
    inlay_chunk chunk = empty_chunk();
    int32_t status = INLAY_OK;
    while (status != INLAY_END) {
        status = inlay_session_next(session.get(), &chunk, nullptr);
        REQUIRE(status >= 0);
        if (chunk.text_size > 0) CHECK((static_cast<unsigned char>(chunk.text[0]) & 0xC0) != 0x80);
        text.append(chunk.text, chunk.text_size);
    }
    CHECK_FALSE(text.empty());
}

TEST_CASE("a cancelled call reports it once and the session goes on") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = create_cache(engine.get());
    const SessionPtr session = create_session(cache.get());
    const SessionPtr alone = create_session(cache.get());
    for (inlay_session* s : {session.get(), alone.get()}) {
        set_limit(s, 20);
        append(s, kPrompt);
    }
    inlay_session_cancel(session.get());
    inlay_chunk chunk = empty_chunk();
    REQUIRE(inlay_session_next(session.get(), &chunk, nullptr) == INLAY_END);
    CHECK(chunk.finish_reason == INLAY_FINISH_CANCELLED);
    CHECK(run(session.get()) == run(alone.get()));

    inlay_session_cancel(session.get());
    append(session.get(), kPrompt);  // clears the cancel
    CHECK(run(session.get()).size() == 20);
}

TEST_CASE("cancel stops a long prompt on another thread") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = create_cache(engine.get(), uint64_t{1} << 30);
    const SessionPtr session = create_session(cache.get(), 100000);
    append(session.get(), std::vector<int32_t>(60000, 9));
    std::atomic<bool> started{false};
    std::atomic<int32_t> reason{-1};
    std::thread reader([&] {
        inlay_chunk chunk = empty_chunk();
        int32_t status = INLAY_MORE;
        while (status == INLAY_MORE) {
            status = inlay_session_next(session.get(), &chunk, nullptr);
            started = true;
        }
        reason = chunk.finish_reason;
    });
    while (!started) std::this_thread::yield();
    inlay_session_cancel(session.get());
    reader.join();
    CHECK(reason == INLAY_FINISH_CANCELLED);
}

TEST_CASE("a second thread on a session is told that it is busy") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = create_cache(engine.get());
    const SessionPtr session = create_session(cache.get());
    set_limit(session.get(), 1);
    append(session.get(), kPrompt);
    struct Attempt {
        inlay_session* session;
        int32_t status = 0;
    } attempt{session.get()};
    // From inside a callback the session is in a call: another thread finds it busy.
    const auto from_another_thread = [](void* user, const inlay_chunk*) -> int32_t {
        auto& a = *static_cast<Attempt*>(user);
        std::thread([&a] { a.status = inlay_session_reset(a.session, nullptr); }).join();
        return 0;
    };
    REQUIRE(inlay_session_run(session.get(), from_another_thread, &attempt, nullptr, nullptr) == INLAY_END);
    CHECK(attempt.status == INLAY_E_BUSY);
    CHECK(length_of(session.get()) == kPrompt.size() + 1);
}

TEST_CASE("a callback ends a run and the session goes on") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = create_cache(engine.get());
    const SessionPtr session = create_session(cache.get());
    set_limit(session.get(), 5);
    append(session.get(), kPrompt);
    const auto stop = [](void*, const inlay_chunk*) -> int32_t { return 1; };
    CHECK(outcome_of([&](inlay_error** error) {
              return inlay_session_run(session.get(), stop, nullptr, nullptr, error);
          }).status == INLAY_E_CANCELLED);
    CHECK(run(session.get()).size() == 4);
}

TEST_CASE("handles may be released in any order") {
    EnginePtr engine = open_tiny();
    CachePtr cache = create_cache(engine.get());
    SessionPtr session = create_session(cache.get());
    engine.reset();
    cache.reset();
    set_limit(session.get(), 4);
    append(session.get(), kPrompt);
    CHECK(run(session.get()).size() == 4);
}

TEST_CASE("two sessions on two threads get the tokens that each gets alone") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = create_cache(engine.get());
    const auto tokens_of = [&](int32_t seed) {
        const SessionPtr session = create_session(cache.get());
        set_limit(session.get(), 40);
        append(session.get(), {seed, seed + 1, seed + 2});
        return run(session.get());
    };
    const std::vector<int32_t> alone[] = {tokens_of(11), tokens_of(90)};
    std::vector<int32_t> together[2];
    std::thread first([&] { together[0] = tokens_of(11); });
    std::thread second([&] { together[1] = tokens_of(90); });
    first.join();
    second.join();
    CHECK(together[0] == alone[0]);
    CHECK(together[1] == alone[1]);
}
