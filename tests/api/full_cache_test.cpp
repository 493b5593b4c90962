// What a host sees of a cache that is full: refusal, waiting, preemption, and room that was promised.
#include <atomic>
#include <chrono>
#include <thread>

#include "model_path.h"

using namespace inlay::test;

namespace {

using Clock = std::chrono::steady_clock;

std::vector<int32_t> tokens_of(size_t n, int32_t seed) {
    std::vector<int32_t> tokens(n);
    for (size_t i = 0; i < n; ++i) tokens[i] = static_cast<int32_t>((static_cast<size_t>(seed) + i * i * 7) % 384);
    return tokens;
}

// A cache for `n_tokens` tokens of one sequence.
CachePtr cache_for(const EnginePtr& engine, uint64_t n_tokens, int32_t when_full) {
    inlay_cache_options options{};
    options.struct_size = sizeof options;
    options.when_full = when_full;
    REQUIRE(inlay_cache_bytes_for(engine.get(), &options, n_tokens, &options.bytes, nullptr) == INLAY_OK);
    inlay_cache* cache = nullptr;
    REQUIRE(inlay_cache_create(engine.get(), &options, &cache, nullptr) == INLAY_OK);
    return CachePtr(cache);
}

SessionPtr session_with(const CachePtr& cache, const std::vector<int32_t>& prompt, uint64_t n_new,
                        uint64_t reserve_tokens = 0) {
    inlay_session_options options{};
    options.struct_size = sizeof options;
    options.reserve_tokens = reserve_tokens;
    inlay_session* raw = nullptr;
    REQUIRE(inlay_session_create(cache.get(), &options, &raw, nullptr) == INLAY_OK);
    SessionPtr session(raw);
    set_limit(session.get(), n_new);
    append(session.get(), prompt);
    return session;
}

// All tokens of the session once its text has ended; asserts nothing, so that any thread may call it.
std::vector<int32_t> all_tokens(const SessionPtr& session) {
    if (inlay_session_run(session.get(), nullptr, nullptr, nullptr, nullptr) != INLAY_END) return {};
    std::vector<int32_t> tokens(1000);
    size_t n_tokens = 0;
    if (inlay_session_tokens(session.get(), 0, tokens.data(), tokens.size(), &n_tokens, nullptr) != INLAY_OK) return {};
    tokens.resize(n_tokens);
    return tokens;
}

std::vector<int32_t> tokens_alone(const EnginePtr& engine, const std::vector<int32_t>& prompt, uint64_t n_new) {
    return all_tokens(session_with(create_cache(engine.get(), 4 << 20), prompt, n_new));
}

Outcome next(const SessionPtr& session, inlay_chunk& chunk) {
    chunk = empty_chunk();
    return outcome_of([&](inlay_error** error) { return inlay_session_next(session.get(), &chunk, error); });
}

}  // namespace

TEST_CASE("a text is not begun without the room that it reserves, and then never stopped for room") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = cache_for(engine, 160, INLAY_WHEN_FULL_FAIL);
    const SessionPtr first = session_with(cache, tokens_of(30, 1), 80, 80);
    const SessionPtr second = session_with(cache, tokens_of(30, 2), 80, 80);
    const SessionPtr third = session_with(cache, tokens_of(30, 3), 80);
    inlay_chunk chunk{};
    REQUIRE(next(first, chunk).status == INLAY_OK);
    CHECK(stats_of(cache).n_promised_blocks == 5);
    const Outcome refused = next(second, chunk);
    CHECK(refused.status == INLAY_E_CACHE_FULL);
    CHECK(refused.sentence == "the session needs 7 more blocks of the cache and 3 are free or can be freed");
    CHECK(stats_of(second).n_computed_tokens == 0);

    int32_t status = INLAY_OK;
    while (status == INLAY_OK) status = next(third, chunk).status;
    CHECK(status == INLAY_E_CACHE_FULL);
    CHECK(length_of(third.get()) == 49);
    CHECK(all_tokens(first) == tokens_alone(engine, tokens_of(30, 1), 80));
    CHECK(stats_of(cache).n_promised_blocks == 0);

    REQUIRE(inlay_session_reset(first.get(), nullptr) == INLAY_OK);
    CHECK(all_tokens(third) == tokens_alone(engine, tokens_of(30, 3), 80));
}

TEST_CASE("a cancel and what the host changes end the promise") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = cache_for(engine, 160, INLAY_WHEN_FULL_FAIL);
    const SessionPtr session = session_with(cache, tokens_of(20, 1), 0, 100);
    inlay_chunk chunk{};
    REQUIRE(next(session, chunk).status == INLAY_OK);
    CHECK(stats_of(cache).n_promised_blocks == 6);
    inlay_session_cancel(session.get());
    CHECK(next(session, chunk).status == INLAY_END);
    CHECK(stats_of(cache).n_promised_blocks == 0);
    REQUIRE(next(session, chunk).status == INLAY_OK);
    CHECK(stats_of(cache).n_promised_blocks == 6);  // the same end of the text as before
    append(session.get(), {1});
    CHECK(stats_of(cache).n_promised_blocks == 0);
}

TEST_CASE("a session waits for room until another gives it back") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = cache_for(engine, 96, INLAY_WHEN_FULL_WAIT);
    const auto prompt = tokens_of(50, 2);
    const SessionPtr holder = session_with(cache, tokens_of(50, 1), 3);
    REQUIRE(all_tokens(holder).size() == 53);

    SECTION("in several calls, each of which returns after a while") {
        const SessionPtr waiting = session_with(cache, prompt, 5);
        inlay_chunk chunk{};
        const auto begin = Clock::now();
        CHECK(next(waiting, chunk).status == INLAY_MORE);
        CHECK(Clock::now() - begin >= std::chrono::milliseconds(90));
        CHECK(chunk.n_tokens == 0);
        CHECK(stats_of(waiting).n_steps == 0);
        CHECK(length_of(holder.get()) == 53);
        REQUIRE(inlay_session_truncate(holder.get(), 10, nullptr) == INLAY_OK);
        CHECK(all_tokens(waiting) == tokens_alone(engine, prompt, 5));
    }
    SECTION("and may be cancelled meanwhile") {
        const SessionPtr waiting = session_with(cache, prompt, 5);
        std::thread canceller([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            inlay_session_cancel(waiting.get());
        });
        inlay_chunk chunk{};
        const auto begin = Clock::now();
        CHECK(next(waiting, chunk).status == INLAY_END);
        CHECK(chunk.finish_reason == INLAY_FINISH_CANCELLED);
        CHECK(Clock::now() - begin < std::chrono::milliseconds(90));
        canceller.join();
    }
    SECTION("forward waits in one call") {
        const SessionPtr waiting = session_with(cache, {}, 5);
        std::thread giver([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(250));
            inlay_session_reset(holder.get(), nullptr);
        });
        CHECK(inlay_session_forward(waiting.get(), prompt.data(), prompt.size(), 49, nullptr) == INLAY_OK);
        giver.join();
        CHECK(length_of(waiting.get()) == 50);
    }
    SECTION("first come, first served") {
        std::atomic<int> n_served{0};
        int places[3] = {};
        std::vector<SessionPtr> waiting;
        std::vector<std::thread> threads;
        // The first wants more than there is for a while; those behind do not overtake it.
        for (int i = 0; i < 3; ++i) waiting.push_back(session_with(cache, tokens_of(i == 0 ? 90 : 10, i), 1));
        for (int i = 0; i < 3; ++i) {
            threads.emplace_back([&, i] {
                if (!all_tokens(waiting[static_cast<size_t>(i)]).empty()) places[i] = ++n_served;
                waiting[static_cast<size_t>(i)].reset();
            });
            std::this_thread::sleep_for(std::chrono::milliseconds(30));
        }
        CHECK(n_served == 0);
        REQUIRE(inlay_session_reset(holder.get(), nullptr) == INLAY_OK);
        for (std::thread& thread : threads) thread.join();
        CHECK(places[0] == 1);
        CHECK(n_served == 3);
    }
    SECTION("but not for more than there is") {
        const SessionPtr too_long = session_with(cache, tokens_of(97, 1), 1);
        inlay_chunk chunk{};
        CHECK(next(too_long, chunk).status == INLAY_E_CACHE_FULL);
    }
    CHECK(stats_of(cache).n_preemptions == 0);
}

TEST_CASE("sessions of one thread that wait for each other do not wait for ever") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = cache_for(engine, 96, INLAY_WHEN_FULL_WAIT);
    std::vector<SessionPtr> sessions;
    for (int32_t i = 0; i < 3; ++i) sessions.push_back(session_with(cache, tokens_of(30, i), 40));
    std::vector<int32_t> n_left = {0, 1, 2};
    while (!sessions.empty()) {
        std::vector<inlay_session*> handles;
        for (const SessionPtr& session : sessions) handles.push_back(session.get());
        std::vector<inlay_chunk> chunks(handles.size(), empty_chunk());
        std::vector<int32_t> statuses(handles.size());
        REQUIRE(inlay_step(handles.data(), handles.size(), chunks.data(), sizeof(inlay_chunk), statuses.data(), nullptr,
                           nullptr) == INLAY_OK);
        for (size_t i = statuses.size(); i-- > 0;) {
            REQUIRE(statuses[i] >= 0);
            if (statuses[i] != INLAY_END) continue;
            CHECK(all_tokens(sessions[i]) == tokens_alone(engine, tokens_of(30, n_left[i]), 40));
            sessions.erase(sessions.begin() + static_cast<ptrdiff_t>(i));
            n_left.erase(n_left.begin() + static_cast<ptrdiff_t>(i));
        }
    }
    CHECK(stats_of(cache).n_preemptions > 0);
}

TEST_CASE("a session whose blocks went to another goes on as if nothing had been") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = cache_for(engine, 96, INLAY_WHEN_FULL_PREEMPT);
    const auto prompt = tokens_of(50, 1);
    const SessionPtr idle = session_with(cache, prompt, 10);
    const std::vector<int32_t> first = all_tokens(idle);
    const SessionPtr other = session_with(cache, tokens_of(70, 2), 10);
    CHECK(all_tokens(other) == tokens_alone(engine, tokens_of(70, 2), 10));
    CHECK(stats_of(cache).n_preemptions == 1);

    SECTION("with next") {
        append(idle.get(), {3, 4});
        auto turns = first;
        turns.insert(turns.end(), {3, 4});
        CHECK(all_tokens(idle) == tokens_alone(engine, turns, 10));
        // All but the last token of the text, which had not been computed. A block of it was still cached.
        CHECK(stats_of(idle).n_recomputed_tokens == 43);
        CHECK(stats_of(idle).n_reused_tokens == 16);
    }
    SECTION("with forward, in more than one step") {
        inlay_engine_options options = engine_options();
        options.max_step_tokens = 16;
        const EnginePtr narrow = open_model(tiny_model(), options);
        const CachePtr small = cache_for(narrow, 96, INLAY_WHEN_FULL_PREEMPT);
        const SessionPtr preempted = session_with(small, prompt, 1);
        const std::vector<int32_t> before = all_tokens(preempted);
        CHECK_FALSE(all_tokens(session_with(small, tokens_of(90, 2), 1)).empty());
        const auto row_after = [&](const SessionPtr& session, const std::vector<int32_t>& tokens) {
            REQUIRE(inlay_session_forward(session.get(), tokens.data(), tokens.size(), tokens.size() - 1, nullptr) ==
                    INLAY_OK);
            const float* logits = nullptr;
            size_t n_rows = 0, n_vocabulary = 0;
            REQUIRE(inlay_session_logits(session.get(), &logits, &n_rows, &n_vocabulary, nullptr) == INLAY_OK);
            return std::vector<float>(logits, logits + n_rows * n_vocabulary);
        };
        const std::vector<float> expected =
            row_after(session_with(create_cache(engine.get(), 4 << 20), before, 1), {5, 6, 7});
        CHECK(row_after(preempted, {5, 6, 7}) == expected);
        CHECK(stats_of(preempted).n_recomputed_tokens == 50);
    }
    SECTION("and a fork of it too") {
        inlay_session* raw = nullptr;
        REQUIRE(inlay_session_fork(idle.get(), 40, &raw, nullptr) == INLAY_OK);
        const SessionPtr fork(raw);
        CHECK(all_tokens(fork) == tokens_alone(engine, std::vector(prompt.begin(), prompt.begin() + 40), 10));
    }
}

TEST_CASE("nobody takes the blocks of a pin") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = cache_for(engine, 96, INLAY_WHEN_FULL_PREEMPT);
    const SessionPtr older = session_with(cache, tokens_of(50, 1), 0);
    inlay_chunk chunk{};
    REQUIRE(next(older, chunk).status == INLAY_OK);
    const SessionPtr younger = session_with(cache, tokens_of(50, 2), 0);
    const auto prompt = tokens_of(50, 1);
    uint64_t pin = 0, n_held = 0;
    REQUIRE(inlay_cache_pin(cache.get(), prompt.data(), prompt.size(), 0, &pin, &n_held, nullptr) == INLAY_OK);
    CHECK(n_held == 48);
    REQUIRE(inlay_session_reset(older.get(), nullptr) == INLAY_OK);
    CHECK(next(younger, chunk).status == INLAY_MORE);
    REQUIRE(inlay_cache_unpin(cache.get(), pin, nullptr) == INLAY_OK);
    CHECK(next(younger, chunk).status == INLAY_OK);
}

TEST_CASE("when_full is one of its values") {
    const EnginePtr engine = open_tiny();
    inlay_cache_options options{};
    options.struct_size = sizeof options;
    inlay_cache* cache = nullptr;
    const auto create = [&] {
        return outcome_of(
            [&](inlay_error** error) { return inlay_cache_create(engine.get(), &options, &cache, error); });
    };
    options.when_full = 3;
    CHECK(create().status == INLAY_E_INVALID_ARGUMENT);
    CHECK(create().sentence == "options->when_full is 3, which is none of INLAY_WHEN_FULL_*");
    options.when_full = 0;
    options.reserved = 1;
    CHECK(create().status == INLAY_E_UNSUPPORTED);
}
