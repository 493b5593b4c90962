// Memory that can not be had: every allocation of both seams fails in turn, and so does address space. A call reports
// it, the handles go on working, and the tokens are those of an undisturbed run.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "base/allocation.h"
#include "model_path.h"
#include "sanitized.h"

using namespace inlay::test;

namespace {

// Runs `call` with each of its allocations failing in turn, until one run needs fewer. `failed` is told after each.
// Returns how many failures were reported.
int64_t fail_each_allocation(const std::function<int32_t(inlay_error**)>& call, const std::function<void()>& failed) {
    int64_t n_reported = 0;
    const int64_t stride = kSlowed ? 13 : 1;
    for (int64_t n = 0;; n += stride) {
        inlay_error* raw = nullptr;
        inlayx_fail_allocation(n);
        const int32_t status = call(&raw);
        const bool was_reached = inlayx_fail_allocation(-1) < 0;
        const ErrorPtr error(raw);
        if (!was_reached) {
            REQUIRE(status >= 0);
            return n_reported;
        }
        if (status >= 0) continue;  // what failed could be done without
        REQUIRE(status == INLAY_E_OUT_OF_MEMORY);
        REQUIRE(inlay_error_code(error.get()) == INLAY_E_OUT_OF_MEMORY);
        ++n_reported;
        failed();
    }
}

EnginePtr open_one_thread() {
    return open_tiny(0, 1);
}

// A life of two sessions, call by call. Each call is made until it succeeds.
class Life {
public:
    explicit Life(const inlay_engine* engine) : engine_(engine) {}
    ~Life() {
        for (inlay_session* session : sessions_) inlay_session_release(session);
        inlay_cache_release(cache_);
    }
    Life(const Life&) = delete;
    Life& operator=(const Life&) = delete;

    // Returns the generated tokens. The allocation number `n` fails; `n_failures` counts the calls that report it.
    std::vector<int32_t> run(int64_t n, int& n_failures) {
        tokens_.reserve(60);  // the test's own memory comes through the same seam
        inlayx_fail_allocation(n);
        inlay_cache_options cache_options{};
        cache_options.struct_size = sizeof cache_options;
        cache_options.bytes = 1 << 20;
        until_done(n_failures, [&] { return inlay_cache_create(engine_, &cache_options, &cache_, nullptr); });
        for (inlay_session*& session : sessions_) {
            until_done(n_failures, [&] { return inlay_session_create(cache_, nullptr, &session, nullptr); });
            inlay_generation_options generation{};
            generation.struct_size = sizeof generation;
            generation.flags = INLAY_GENERATION_IGNORE_END;
            generation.temperature = 1;
            generation.seed = 3;
            until_done(n_failures, [&] { return inlay_session_set_generation(session, &generation, nullptr); });
            until_done(n_failures, [&] {
                return inlay_session_append_text(session, "A text that is longer than a block of tokens.", SIZE_MAX,
                                                 INLAY_TEXT_ADD_SPECIAL, nullptr);
            });
        }
        generate_alone(sessions_[0], 20, n_failures);
        until_done(n_failures, [&] { return inlay_session_truncate(sessions_[0], 21, nullptr); });
        generate_together(20, n_failures);
        fork_and_pin(n_failures);
        const int32_t more[] = {4, 5, 6};
        until_done(n_failures, [&] { return inlay_session_forward(sessions_[1], more, 3, 0, nullptr); });
        inlayx_fail_allocation(-1);
        return tokens_;
    }

private:
    template <typename Call>
    static int32_t until_done(int& n_failures, const Call& call) {
        while (true) {
            const int32_t status = call();
            if (status >= 0) return status;
            if (status != INLAY_E_OUT_OF_MEMORY || n_failures > 2) {
                inlayx_fail_allocation(-1);
                FAIL("status " << status);
            }
            ++n_failures;
        }
    }

    void take(const inlay_chunk& chunk) { tokens_.insert(tokens_.end(), chunk.tokens, chunk.tokens + chunk.n_tokens); }

    void generate_alone(inlay_session* session, int n_tokens, int& n_failures) {
        for (int i = 0; i < n_tokens; ++i) {
            inlay_chunk chunk = empty_chunk();
            until_done(n_failures, [&] { return inlay_session_next(session, &chunk, nullptr); });
            take(chunk);
        }
    }

    // A session that failed is stepped alone, so that both stay in pace.
    void generate_together(int n_tokens, int& n_failures) {
        for (int i = 0; i < n_tokens; ++i) {
            inlay_chunk chunks[2];
            int32_t statuses[2];
            until_done(n_failures,
                       [&] { return inlay_step(sessions_, 2, chunks, sizeof *chunks, statuses, nullptr, nullptr); });
            for (size_t s = 0; s < 2; ++s) {
                if (statuses[s] == INLAY_E_OUT_OF_MEMORY) {
                    ++n_failures;
                    until_done(n_failures, [&] { return inlay_session_next(sessions_[s], &chunks[s], nullptr); });
                } else if (statuses[s] < 0) {
                    inlayx_fail_allocation(-1);
                    FAIL("status " << statuses[s]);
                }
                take(chunks[s]);
            }
        }
    }

    void fork_and_pin(int& n_failures) {
        inlay_session* forked = nullptr;
        until_done(n_failures, [&] { return inlay_session_fork(sessions_[0], UINT64_MAX, &forked, nullptr); });
        inlay_chunk chunk = empty_chunk();
        until_done(n_failures, [&] { return inlay_session_next(forked, &chunk, nullptr); });
        const SessionPtr owner(forked);
        const int32_t tokens[16] = {1, 2, 3};
        uint64_t pin = 0;
        until_done(n_failures, [&] { return inlay_cache_pin(cache_, tokens, 16, 0, &pin, nullptr, nullptr); });
        until_done(n_failures, [&] { return inlay_cache_trim(cache_, nullptr); });
        until_done(n_failures, [&] { return inlay_cache_unpin(cache_, pin, nullptr); });
    }

    const inlay_engine* engine_;
    inlay_cache* cache_ = nullptr;
    inlay_session* sessions_[2] = {nullptr, nullptr};
    std::vector<int32_t> tokens_;
};

uint64_t address_space_of_this_process() {
    std::ifstream statm("/proc/self/statm");
    uint64_t pages = 0;
    statm >> pages;
    return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// Uses the library with `bytes` more address space than now. 0: all went well, 1: memory was short and said so,
// 2: anything else.
int use_with_address_space(uint64_t bytes) {
    const rlimit limit{address_space_of_this_process() + bytes, RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &limit) != 0) return 2;
    const auto verdict = [](int32_t status) { return status == INLAY_E_OUT_OF_MEMORY ? 1 : 2; };
    inlay_engine* engine = nullptr;
    if (const int32_t status = inlay_engine_open(tiny_model().c_str(), SIZE_MAX, nullptr, &engine, nullptr); status < 0)
        return verdict(status);
    inlay_cache_options options{};
    options.struct_size = sizeof options;
    options.bytes = 64 << 20;
    options.flags = INLAY_CACHE_COMMIT_NOW;
    inlay_cache* cache = nullptr;
    int result = 0;
    if (const int32_t status = inlay_cache_create(engine, &options, &cache, nullptr); status < 0) {
        result = verdict(status);
        options.bytes = 1 << 20;  // a smaller one may fit
        if (inlay_cache_create(engine, &options, &cache, nullptr) < 0) {
            inlay_engine_release(engine);
            return result;
        }
    }
    inlay_session* session = nullptr;
    const std::vector<int32_t> prompt(400, 9);
    inlay_chunk chunk = empty_chunk();
    int32_t status = inlay_session_create(cache, nullptr, &session, nullptr);
    if (status >= 0) status = inlay_session_append_tokens(session, prompt.data(), prompt.size(), nullptr);
    for (int i = 0; i < 10 && status >= 0; ++i) status = inlay_session_next(session, &chunk, nullptr);
    if (status < 0) result = verdict(status);
    inlay_session_release(session);
    inlay_cache_release(cache);
    inlay_engine_release(engine);
    return result;
}

}  // namespace

// First, while this process has no threads that a fork would leave behind.
TEST_CASE("address space that runs out is a status") {
    if (kSlowed) INLAY_SKIP("sanitizers and emulators take address space of their own");
    int n_well = 0, n_short = 0;
    for (uint64_t megabytes : {0, 1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 100, 130, 200, 400, 2000}) {
        CAPTURE(megabytes);
        const pid_t pid = fork();
        REQUIRE(pid >= 0);
        if (pid == 0) _exit(use_with_address_space(megabytes << 20));
        int status = 0;
        REQUIRE(waitpid(pid, &status, 0) == pid);
        REQUIRE(WIFEXITED(status));
        REQUIRE(WEXITSTATUS(status) <= 1);
        n_well += WEXITSTATUS(status) == 0;
        n_short += WEXITSTATUS(status) == 1;
    }
    CHECK(n_well >= 1);
    CHECK(n_short >= 5);
}

TEST_CASE("opening fails at each allocation and leaves nothing") {
    const std::string path = tiny_model();
    inlay_engine* engine = nullptr;
    inlay_engine_options options{};
    options.struct_size = sizeof options;
    options.n_threads = 2;
    const int64_t n = fail_each_allocation(
        [&](inlay_error** error) { return inlay_engine_open(path.c_str(), SIZE_MAX, &options, &engine, error); },
        [&] { REQUIRE(engine == nullptr); });
    CHECK(n > (kSlowed ? 10 : 50));
    REQUIRE(engine);
    inlay_engine_release(engine);
}

TEST_CASE("calls without a session fail at each allocation and then succeed") {
    const EnginePtr engine = open_one_thread();
    const std::string path = tiny_model();
    const auto nothing = [] {};
    size_t needed = 0;
    CHECK(fail_each_allocation(
              [&](inlay_error** error) {
                  return inlay_tokenize(engine.get(), "Words, and  more words.", SIZE_MAX, 0, nullptr, 0, &needed,
                                        error);
              },
              nothing) > 0);
    const std::vector<int32_t> tokens(200, 100);
    CHECK(fail_each_allocation(
              [&](inlay_error** error) {
                  return inlay_detokenize(engine.get(), tokens.data(), tokens.size(), 0, nullptr, 0, &needed, error);
              },
              nothing) > 0);
    CHECK(fail_each_allocation(
              [&](inlay_error** error) {
                  return inlay_engine_metadata_value(engine.get(), 0, nullptr, 0, &needed, error);
              },
              nothing) >= 0);
    inlay_estimate estimate{};
    estimate.struct_size = sizeof estimate;
    CHECK(fail_each_allocation(
              [&](inlay_error** error) {
                  return inlay_estimate_memory(path.c_str(), SIZE_MAX, nullptr, &estimate, error);
              },
              nothing) > 20);
}

TEST_CASE("prompt and decoding fail at each allocation, go on, and give the same tokens") {
    const EnginePtr engine = open_one_thread();
    int n_failures = 0;
    const std::vector<int32_t> expected = Life(engine.get()).run(-1, n_failures);
    REQUIRE(n_failures == 0);
    REQUIRE(expected.size() == 60);
    int n_reported = 0;
    for (int64_t n = 0;; n += kSlowed ? 5 : 1) {
        CAPTURE(n);
        Life life(engine.get());
        n_failures = 0;
        const std::vector<int32_t> tokens = life.run(n, n_failures);
        REQUIRE(tokens == expected);
        if (n_failures == 0 && n > 400) break;
        n_reported += n_failures;
    }
    CHECK(n_reported > 20);
}
