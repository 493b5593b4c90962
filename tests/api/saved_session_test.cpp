// A saved session, loaded anywhere, goes on as it would have; and shares its blocks only where the host says so.
#include <atomic>
#include <thread>

#include "saved_session.h"

using namespace inlay::test;

namespace {

SessionPtr loaded(const Place& place, const std::string& bytes, uint32_t flags = 0,
                  inlay_load_result* result = nullptr) {
    SessionPtr session = place.session();
    const Outcome outcome = load(session.get(), bytes, flags, result);
    INFO(outcome.sentence);
    REQUIRE(outcome.status == INLAY_OK);
    return session;
}

uint64_t reused(const Place& place, const std::vector<int32_t>& prompt) {
    const SessionPtr session = place.session();
    append(session.get(), prompt);
    go_on(session, 1);
    inlay_session_stats stats{};
    stats.struct_size = sizeof stats;
    REQUIRE(inlay_session_get_stats(session.get(), &stats, nullptr) == INLAY_OK);
    return stats.n_reused_tokens;
}

// A session of 75 tokens, 70 of them a prompt.
std::string some_session(const Place& place) {
    const SessionPtr session = place.session();
    sample_with(session, 3);
    append(session.get(), tokens_of(70, 1));
    go_on(session, 5);
    return saved(session.get());
}

}  // namespace

TEST_CASE("a loaded session goes on exactly as the saved one") {
    for (const Model& model : kModels) {
        const Place here(model, INLAY_COMPUTE_AUTO, 16 << 20), there(model, INLAY_COMPUTE_AUTO, 16 << 20);
        for (const size_t n_prompt : {1, 11, 12, 13, 16, 60, 70, 200}) {
            CAPTURE(model.path, model.kv_type, n_prompt);
            const SessionPtr original = here.session();
            sample_with(original, 5);
            append(original.get(), tokens_of(n_prompt, n_prompt));
            go_on(original, 4);
            const std::string bytes = saved(original.get());
            inlay_load_result result = empty_result();
            const SessionPtr copy = loaded(there, bytes, 0, &result);
            CHECK(result.n_tokens == n_prompt + 4);
            CHECK(result.n_computed_tokens == n_prompt + 3);
            CHECK(result.is_shared == 0);
            CHECK(result.same_numerics == 1);
            CHECK(saved(copy.get()) == bytes);
            CHECK(saved(original.get()) == bytes);  // it is as it was
            const SessionPtr again = loaded(there, bytes, INLAY_LOAD_TRUSTED);
            const Continuation expected = go_on(original, 30);
            CHECK(go_on(copy, 30) == expected);
            CHECK(go_on(again, 30) == expected);
        }
    }
}

TEST_CASE("a loaded session is cut, forked and appended to as the saved one") {
    for (const Model& model : kModels) {
        const Place here(model), there(model);
        for (const uint32_t flags : {0u, INLAY_LOAD_TRUSTED}) {
            for (const uint64_t n_kept : {uint64_t{3}, uint64_t{16}, uint64_t{50}, uint64_t{64}, uint64_t{74}}) {
                CAPTURE(model.path, model.kv_type, flags, n_kept);
                const SessionPtr original = loaded(here, some_session(here));
                const SessionPtr copy = loaded(there, saved(original.get()), flags);
                std::vector<Continuation> all;
                for (const SessionPtr* session : {&original, &copy}) {
                    inlay_session* raw = nullptr;
                    REQUIRE(inlay_session_fork(session->get(), n_kept, &raw, nullptr) == INLAY_OK);
                    const SessionPtr fork(raw);
                    append(fork.get(), {5, 6, 7});
                    all.push_back(go_on(fork, 20));
                    REQUIRE(inlay_session_truncate(session->get(), n_kept, nullptr) == INLAY_OK);
                    append(session->get(), {5, 6, 7});
                    all.push_back(go_on(*session, 20));
                }
                for (const Continuation& each : all) CHECK(each == all[0]);
            }
        }
    }
}

TEST_CASE("what a session has beside its tokens is saved too") {
    const Place here(kModels[0]), there(kModels[0]);
    const SessionPtr original = here.session();
    std::string bytes = saved(original.get());  // empty
    CHECK(length_of(loaded(there, bytes).get()) == 0);

    append(original.get(), tokens_of(40, 2));  // nothing computed
    inlay_load_result result = empty_result();
    const SessionPtr waiting = loaded(there, saved(original.get()), INLAY_LOAD_TRUSTED, &result);
    CHECK(result.n_computed_tokens == 0);
    CHECK(go_on(waiting, 5) == go_on(original, 5));

    // Ended: the copy has ended too, and goes on when something is appended.
    set_limit(original.get(), 3);
    go_on(original, 3);
    const SessionPtr ended = loaded(there, saved(original.get()));
    inlay_chunk chunk = empty_chunk();
    CHECK(inlay_session_next(ended.get(), &chunk, nullptr) == INLAY_END);
    CHECK(chunk.finish_reason == INLAY_FINISH_LENGTH);
    append(ended.get(), {1});
    append(original.get(), {1});
    CHECK(go_on(ended, 9) == go_on(original, 9));  // three tokens each: the limit came along

    // Between a forward and what follows: the logits are computed again.
    const std::vector<int32_t> prompt = tokens_of(32, 4);
    const SessionPtr forwarded = here.session();
    REQUIRE(inlay_session_forward(forwarded.get(), prompt.data(), 32, 31, nullptr) == INLAY_OK);
    const SessionPtr copy = loaded(there, saved(forwarded.get()));
    const float* logits = nullptr;
    CHECK(inlay_session_logits(copy.get(), &logits, nullptr, nullptr, nullptr) == INLAY_E_STATE);
    CHECK(go_on(copy, 3) == go_on(forwarded, 3));
}

TEST_CASE("text in the middle of a character is delivered whole after a load") {
    const Place here(kModels[0]), there(kModels[0]);
    size_t n_in_the_middle = 0;
    const SessionPtr original = here.session();
    sample_with(original, 11);
    append(original.get(), tokens_of(9, 1));
    for (int i = 0; i < 60; ++i) {
        go_on(original, 1);
        const std::string bytes = saved(original.get());
        n_in_the_middle += value_at<uint32_t>(bytes, section_begin(bytes, kSavedState) + 72) != 0;
        const SessionPtr copy = loaded(there, bytes);
        inlay_session* raw = nullptr;
        REQUIRE(inlay_session_fork(original.get(), UINT64_MAX, &raw, nullptr) == INLAY_OK);
        CHECK(go_on(copy, 3) == go_on(SessionPtr(raw), 3));
    }
    CHECK(n_in_the_middle > 0);
}

TEST_CASE("loaded blocks are private unless they are trusted") {
    for (const Model& model : kModels) {
        CAPTURE(model.path, model.kv_type);
        const bool has_windows = model.path != kModels[0].path;
        const Place here(model);
        const std::string bytes = some_session(here);
        const std::vector<int32_t> prompt = tokens_of(70, 1);
        {
            const Place there(model);
            const SessionPtr session = loaded(there, bytes);
            const SessionPtr second = loaded(there, bytes);
            CHECK(reused(there, prompt) == 0);
            CHECK(reused(there, prompt) == 64);  // of the session before
            go_on(session, 40);
            REQUIRE(inlay_session_reset(session.get(), nullptr) == INLAY_OK);
            append(session.get(), tokens_of(40, 77));  // nothing loaded is left: it shares again
            go_on(session, 1);
            CHECK(reused(there, tokens_of(40, 77)) == 32);
            REQUIRE(inlay_session_truncate(second.get(), 20, nullptr) == INLAY_OK);
            append(second.get(), tokens_of(40, 99));  // something is
            go_on(second, 1);
            std::vector<int32_t> same = prompt;
            same.resize(20);
            const std::vector<int32_t> more = tokens_of(40, 99);
            same.insert(same.end(), more.begin(), more.end());
            // Below windows all is computed again, and so is anyone's.
            CHECK(reused(there, same) == (has_windows ? 48 : 16));
        }
        const Place there(model);
        inlay_load_result result = empty_result();
        const SessionPtr session = loaded(there, bytes, INLAY_LOAD_TRUSTED, &result);
        CHECK(result.is_shared == 1);
        CHECK(reused(there, prompt) == 64);
        CHECK(there.stats().n_shared_blocks == 0);
        const Place alone(model, INLAY_COMPUTE_AUTO, 0, INLAY_WHEN_FULL_FAIL, INLAY_CACHE_NO_REUSE);
        loaded(alone, bytes, INLAY_LOAD_TRUSTED, &result);
        CHECK(result.is_shared == 0);
    }
}

TEST_CASE("blocks that were computed in another way stay private, also when they are saved again") {
    const Place here(kModels[0]), there(kModels[0], INLAY_COMPUTE_F32);
    inlay_load_result result = empty_result();
    const SessionPtr session = loaded(there, some_session(here), INLAY_LOAD_TRUSTED, &result);
    CHECK(result.same_numerics == 0);
    CHECK(result.is_shared == 0);
    CHECK(reused(there, tokens_of(70, 1)) == 0);
    go_on(session, 5);
    inlay_session* raw = nullptr;
    REQUIRE(inlay_session_fork(session.get(), 60, &raw, nullptr) == INLAY_OK);
    const SessionPtr fork(raw);
    for (const SessionPtr* each : {&session, &fork}) {
        for (const Place* place : {&here, &there}) {
            loaded(*place, saved(each->get()), INLAY_LOAD_TRUSTED, &result);
            CHECK(result.same_numerics == 0);
        }
    }
    REQUIRE(inlay_session_reset(session.get(), nullptr) == INLAY_OK);
    append(session.get(), tokens_of(70, 1));
    go_on(session, 1);
    loaded(there, saved(session.get()), INLAY_LOAD_TRUSTED, &result);
    CHECK(result.same_numerics == 1);
    CHECK(result.is_shared == 1);
}

TEST_CASE("a load takes room as a text does, or nothing") {
    const Model model = kModels[0];
    const Place here(model);
    const std::string bytes = some_session(here);
    uint64_t budget = 0;
    REQUIRE(inlay_cache_bytes_for(here.engine.get(), nullptr, 160, &budget, nullptr) == INLAY_OK);
    const auto filled = [](const Place& place, size_t n) {
        SessionPtr session = place.session();
        append(session.get(), tokens_of(n, 50));
        go_on(session, 1);
        return session;
    };
    {
        const Place full(model, INLAY_COMPUTE_AUTO, budget);
        const SessionPtr other = filled(full, 120);
        const inlay_cache_stats before = full.stats();
        const SessionPtr session = full.session();
        const Outcome outcome = load(session.get(), bytes);
        CHECK(outcome.status == INLAY_E_CACHE_FULL);
        CHECK_THAT(outcome.sentence, Catch::Contains("5 more blocks"));
        CHECK(length_of(session.get()) == 0);
        CHECK(full.stats().n_used_blocks == before.n_used_blocks);
        REQUIRE(inlay_session_reset(other.get(), nullptr) == INLAY_OK);
        CHECK(load(session.get(), bytes).status == INLAY_OK);  // cached blocks make room
        CHECK(go_on(session, 9) == go_on(loaded(here, bytes), 9));
    }
    {
        const Place full(model, INLAY_COMPUTE_AUTO, budget, INLAY_WHEN_FULL_PREEMPT);
        const SessionPtr running = filled(full, 120);
        const SessionPtr session = full.session();
        CHECK(load(session.get(), bytes).status == INLAY_E_CACHE_FULL);  // a text that goes on is not stopped
        const SessionPtr copy = loaded(here, saved(running.get()));
        const Continuation expected = go_on(copy, 6);
        inlay_session_cancel(running.get());
        inlay_chunk chunk = empty_chunk();
        CHECK(inlay_session_next(running.get(), &chunk, nullptr) == INLAY_END);
        CHECK(load(session.get(), bytes).status == INLAY_OK);
        CHECK(full.stats().n_preemptions == 1);
        REQUIRE(inlay_session_reset(session.get(), nullptr) == INLAY_OK);
        CHECK(go_on(running, 6) == expected);
    }
    const Place tiny(model, INLAY_COMPUTE_AUTO, budget / 160 * 32);
    const Outcome outcome = load(tiny.session().get(), bytes);
    CHECK(outcome.status == INLAY_E_CACHE_FULL);
    CHECK_THAT(outcome.sentence, Catch::Contains("a cache that has 2"));
    CHECK(load(here.session(50).get(), bytes).status == INLAY_E_CONTEXT_FULL);
}

TEST_CASE("others go on while sessions are saved, loaded and lose their blocks") {
    for (const Model& model : {kModels[0], kModels[3]}) {
        CAPTURE(model.path);
        const Place here(model);
        const std::string bytes = some_session(here);
        const std::vector<int32_t> after_load = go_on(loaded(here, bytes), 6).tokens;
        // Asserts nothing: any thread may call it.
        const auto text_of = [](const Place& place, size_t seed) {
            inlay_session* raw = nullptr;
            std::vector<int32_t> tokens;
            if (inlay_session_create(place.cache.get(), nullptr, &raw, nullptr) != INLAY_OK) return tokens;
            const SessionPtr session(raw);
            const std::vector<int32_t> prompt = tokens_of(60, seed);
            if (inlay_session_append_tokens(session.get(), prompt.data(), prompt.size(), nullptr) != INLAY_OK)
                return tokens;
            inlay_generation_options limit{};
            limit.struct_size = sizeof limit;
            limit.flags = INLAY_GENERATION_IGNORE_END;
            limit.max_new_tokens = 30;
            if (inlay_session_set_generation(session.get(), &limit, nullptr) != INLAY_OK) return tokens;
            for (int32_t status = INLAY_OK; status >= 0 && status != INLAY_END;) {
                inlay_chunk chunk = empty_chunk();
                status = inlay_session_next(session.get(), &chunk, nullptr);
                if (status >= 0) tokens.insert(tokens.end(), chunk.tokens, chunk.tokens + chunk.n_tokens);
            }
            return tokens;
        };
        const std::vector<int32_t> expected[] = {text_of(here, 20), text_of(here, 30)};
        uint64_t budget = 0;
        inlay_cache_options options{};
        options.struct_size = sizeof options;
        options.key_type = options.value_type = model.kv_type;
        REQUIRE(inlay_cache_bytes_for(here.engine.get(), &options, 200, &budget, nullptr) == INLAY_OK);
        const Place narrow(model, INLAY_COMPUTE_AUTO, budget, INLAY_WHEN_FULL_PREEMPT);
        std::atomic<int> n_running{2};
        std::atomic<int> n_wrong{0};
        std::vector<std::thread> threads;
        for (size_t i = 0; i < 2; ++i)
            threads.emplace_back([&, i] {
                for (int round = 0; round < 8; ++round) n_wrong += text_of(narrow, 20 + 10 * i) != expected[i];
                --n_running;
            });
        int n_loaded = 0;
        while (n_running > 0 || n_loaded == 0) {
            const SessionPtr session = narrow.session();
            const Outcome outcome = load(session.get(), bytes, n_loaded % 2 == 0 ? 0 : INLAY_LOAD_TRUSTED);
            if (outcome.status == INLAY_E_CACHE_FULL) continue;
            REQUIRE(outcome.status == INLAY_OK);
            ++n_loaded;
            const SessionPtr again = here.session();
            CHECK(load(again.get(), saved(session.get())).status == INLAY_OK);
            CHECK(go_on(again, 6).tokens == after_load);
            CHECK(go_on(session, 6).tokens == after_load);
        }
        for (std::thread& thread : threads) thread.join();
        CHECK(n_wrong == 0);
    }
}

TEST_CASE("windows keep a saved session small") {
    const Place here(kModels[2]);
    const auto size_of = [&](size_t n) {
        const SessionPtr session = here.session(4000);
        append(session.get(), tokens_of(n, 1));
        go_on(session, 1);
        return saved(session.get()).size();
    };
    const size_t short_size = size_of(100);
    CHECK(size_of(400) < 4 * short_size);
}

TEST_CASE("callbacks that fail end a save or a load") {
    const Place here(kModels[0]);
    const std::string bytes = some_session(here);
    const SessionPtr original = loaded(here, bytes);
    struct Failing {
        int n_left;
        inlay_session* session;
        int32_t status_inside = 0;
        ByteReader reader;
    };
    int n_writes = 0;
    for (bool has_failed = true; has_failed; ++n_writes) {
        Failing failing{n_writes, original.get(), 0, {bytes}};
        const Outcome outcome = outcome_of([&](inlay_error** error) {
            return inlay_session_save(
                original.get(),
                [](void* user, const void*, size_t) -> int32_t {
                    auto& state = *static_cast<Failing*>(user);
                    uint64_t length = 0;
                    state.status_inside = inlay_session_truncate(state.session, 0, nullptr);
                    inlay_session_length(state.session, &length, nullptr);
                    return state.n_left-- == 0 ? 7 : 0;
                },
                &failing, error);
        });
        CHECK(failing.status_inside == INLAY_E_BUSY);
        has_failed = outcome.status != INLAY_OK;
        if (!has_failed) break;
        CHECK(outcome.status == INLAY_E_IO);
        CHECK_THAT(outcome.sentence, Catch::Contains("write returned 7"));
    }
    CHECK(n_writes > 10);
    CHECK(saved(original.get()) == bytes);

    const SessionPtr session = here.session();
    int n_reads = 0;
    for (;; ++n_reads) {
        Failing failing{n_reads, session.get(), 0, {bytes}};
        const Outcome outcome = outcome_of([&](inlay_error** error) {
            return inlay_session_load(
                session.get(), 0,
                [](void* user, void* buffer, size_t size, size_t* n_read) -> int32_t {
                    auto& state = *static_cast<Failing*>(user);
                    state.status_inside = inlay_session_reset(state.session, nullptr);
                    if (state.n_left-- == 0) return -3;
                    return ByteReader::read(&state.reader, buffer, size, n_read);
                },
                &failing, nullptr, error);
        });
        CHECK(failing.status_inside == INLAY_E_BUSY);
        if (outcome.status == INLAY_OK) break;
        CHECK(outcome.status == INLAY_E_IO);
        CHECK_THAT(outcome.sentence, Catch::Contains("read returned -3"));
        CHECK(length_of(session.get()) == 0);
    }
    CHECK(n_reads > 10);
    CHECK(go_on(session, 5) == go_on(original, 5));

    const Outcome too_much = outcome_of([&](inlay_error** error) {
        return inlay_session_load(
            here.session().get(), 0,
            [](void*, void*, size_t size, size_t* n_read) -> int32_t {
                *n_read = size + 1;
                return 0;
            },
            nullptr, nullptr, error);
    });
    CHECK(too_much.status == INLAY_E_IO);
}

TEST_CASE("save and load refuse what is no call") {
    const Place here(kModels[0]);
    const std::string bytes = some_session(here);
    const SessionPtr session = here.session();
    ByteReader reader{bytes};
    const auto refused = [&](inlay_session* which, uint32_t flags, inlay_load_callback read, inlay_load_result* result,
                             int32_t status, const char* word) {
        const Outcome outcome = outcome_of(
            [&](inlay_error** error) { return inlay_session_load(which, flags, read, &reader, result, error); });
        CHECK(outcome.status == status);
        CHECK_THAT(outcome.sentence, Catch::Contains(word));
    };
    inlay_load_result no_size{};
    refused(nullptr, 0, ByteReader::read, nullptr, INLAY_E_INVALID_ARGUMENT, "session");
    refused(session.get(), 0, nullptr, nullptr, INLAY_E_INVALID_ARGUMENT, "read");
    refused(session.get(), 2, ByteReader::read, nullptr, INLAY_E_UNSUPPORTED, "flags");
    refused(session.get(), 0, ByteReader::read, &no_size, INLAY_E_INVALID_ARGUMENT, "result->struct_size");
    CHECK(reader.at == 0);
    append(session.get(), {1, 2});
    refused(session.get(), 0, ByteReader::read, nullptr, INLAY_E_STATE, "2 tokens");
    CHECK(inlay_session_save(session.get(), nullptr, nullptr, nullptr) == INLAY_E_INVALID_ARGUMENT);
    const inlay_save_callback write = [](void*, const void*, size_t) -> int32_t { return 0; };
    CHECK(inlay_session_save(nullptr, write, nullptr, nullptr) == INLAY_E_INVALID_ARGUMENT);
}
