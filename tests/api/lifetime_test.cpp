// Handles that are released in any order, from any thread, during work; children made by fork; a process that ends.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "model_path.h"

using namespace inlay::test;

namespace {

// Runs `child` in a forked process and returns its exit status; -1 when a signal ended it.
template <typename Child>
int status_of_fork(const Child& child) {
    const pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) _exit(child());
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int32_t next_status(inlay_session* session) {
    inlay_chunk chunk = empty_chunk();
    return inlay_session_next(session, &chunk, nullptr);
}

}  // namespace

TEST_CASE("engine, cache and sessions are released in every order") {
    std::vector<int> order = {0, 1, 2, 3};
    do {
        EnginePtr engine = open_tiny();
        CachePtr cache = create_cache(engine.get());
        SessionPtr sessions[] = {create_session(cache.get()), create_session(cache.get())};
        for (const SessionPtr& session : sessions) append(session.get(), {1, 2, 3});
        for (int which : order) {
            if (which == 0) engine.reset();
            if (which == 1) cache.reset();
            if (which >= 2) {
                CHECK(next_status(sessions[which - 2].get()) == INLAY_OK);
                sessions[which - 2].reset();
            }
        }
    } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("handles may be released by another thread while a call runs") {
    for (int round = 0; round < 20; ++round) {
        EnginePtr engine = open_tiny();
        CachePtr cache = create_cache(engine.get(), uint64_t{64} << 20);
        SessionPtr session = create_session(cache.get(), 4000);
        append(session.get(), std::vector<int32_t>(3000, 7));
        inlay_session* handle = session.get();
        inlay_session_retain(handle);
        std::atomic<bool> inside{false};
        int32_t status = INLAY_E_INTERNAL;
        std::thread caller([&] {
            inside = true;
            status = next_status(handle);
            inlay_session_release(handle);
        });
        while (!inside) std::this_thread::yield();
        if (round % 2) inlay_session_cancel(handle);
        session.reset();
        cache.reset();
        engine.reset();
        caller.join();
        CHECK((status == INLAY_MORE || status == INLAY_END));
    }
}

TEST_CASE("a session's release does not wait for the step of another") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = create_cache(engine.get(), uint64_t{64} << 20);
    const SessionPtr busy = create_session(cache.get(), 100000);
    append(busy.get(), std::vector<int32_t>(20000, 7));
    std::atomic<bool> stop{false};
    std::thread caller([&] {
        while (!stop)
            if (next_status(busy.get()) != INLAY_MORE) break;
    });
    for (int i = 0; i < 200; ++i) {
        const SessionPtr other = create_session(cache.get());
        append(other.get(), {1, 2, 3});
        if (i % 20 == 0) CHECK(next_status(other.get()) == INLAY_OK);
    }
    stop = true;
    inlay_session_cancel(busy.get());
    caller.join();
}

TEST_CASE("in a forked child inherited handles refuse to work and may be released") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = create_cache(engine.get());
    const SessionPtr session = create_session(cache.get());
    append(session.get(), {1, 2, 3});
    REQUIRE(next_status(session.get()) == INLAY_OK);
    const int status = status_of_fork([&] {
        inlay_error* error = nullptr;
        inlay_chunk chunk = empty_chunk();
        int n_wrong = inlay_session_next(session.get(), &chunk, &error) != INLAY_E_UNSUPPORTED;
        n_wrong += std::string(inlay_error_message(error)).find("fork") == std::string::npos;
        inlay_error_release(error);
        inlay_session* handles[] = {session.get()};
        int32_t statuses[] = {0};
        n_wrong += inlay_step(handles, 1, &chunk, sizeof chunk, statuses, nullptr, nullptr) != INLAY_E_UNSUPPORTED;
        inlay_session* created = nullptr;
        n_wrong += inlay_session_create(cache.get(), nullptr, &created, nullptr) != INLAY_E_UNSUPPORTED;
        inlay_session_cancel(session.get());
        inlay_session_release(session.get());
        inlay_cache_release(cache.get());
        inlay_engine_release(engine.get());
        return n_wrong;
    });
    CHECK(status == 0);
    CHECK(next_status(session.get()) == INLAY_OK);
}

TEST_CASE("a forked child opens an engine of its own") {
#ifdef __SANITIZE_THREAD__
    INLAY_SKIP("ThreadSanitizer lets a forked child start no thread");
#endif
    const EnginePtr engine = open_tiny();
    const int status = status_of_fork([] {
        inlay_engine* own = nullptr;
        if (inlay_engine_open(tiny_model().c_str(), SIZE_MAX, nullptr, &own, nullptr) != INLAY_OK) return 1;
        inlay_engine_release(own);
        return 0;
    });
    CHECK(status == 0);
}

TEST_CASE("a process may end with handles open and a call running") {
    const int status = status_of_fork([] {
        const EnginePtr engine = open_tiny();
        CachePtr cache = create_cache(engine.get(), uint64_t{64} << 20);
        const SessionPtr session = create_session(cache.get(), 100000);
        append(session.get(), std::vector<int32_t>(50000, 7));
        std::atomic<bool> inside{false};
        std::thread caller([&] {
            inside = true;
            while (next_status(session.get()) == INLAY_MORE) {
            }
        });
        while (!inside) std::this_thread::yield();
        std::exit(42);  // static destructors run beside the compute threads
        return 0;
    });
    CHECK(status == 42);
}
