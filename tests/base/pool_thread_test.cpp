#include "base/pool_thread.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "base/workers.h"
#include "engine/engine.h"
#include "tests/reference_data.h"

using namespace inlay;
using namespace std::chrono_literals;

namespace {

using Clock = PoolThread::Clock;

// Trials of the calling thread that passed, of 20.
int n_passed_trials() {
    int n_passed = 0;
    for (int i = 0; i < 20; ++i) {
        ProcessorTrial trial;
        while (trial.goes_on()) continue;
        n_passed += trial.has_passed();
    }
    return n_passed;
}

// Whether another thread mostly gets a processor to itself while this one runs.
bool has_second_processor() {
    std::atomic<int> n_passed{-1};
    std::thread other([&] { n_passed = n_passed_trials(); });
    while (n_passed < 0) continue;
    other.join();
    return n_passed > 10;
}

// Lists until the pool's thread has come and stood still in one of them, so that it pauses. It does not come where it
// has no processor to itself, but then it pauses too.
void stall_once(Workers& workers) {
    std::atomic<bool> has_stalled{false};
    for (const auto give_up = Clock::now() + 5s; !has_stalled && Clock::now() < give_up;)
        workers.run(2, [&](size_t, unsigned thread) {
            if (thread != 0 && !has_stalled.exchange(true)) std::this_thread::sleep_for(5ms);
            for (const auto end = Clock::now() + 20us; Clock::now() < end;) continue;
        });
}

}  // namespace

TEST_CASE("pauses grow while a thread goes on standing still, up to a limit") {
    PoolThread thread;
    CHECK(!thread.has_stalled());
    for (const auto pause : {8ms, 32ms, 128ms, 512ms, 512ms}) {
        thread.mark_stalled();
        CHECK(thread.has_stalled());
        CHECK(thread.begin_pause() == pause);
        CHECK(!thread.has_stalled());
    }
}

TEST_CASE("a thread that ran well for a while pauses shortly again") {
    PoolThread thread;
    for (int i = 0; i < 2; ++i) {
        thread.mark_stalled();
        CHECK(thread.begin_pause() == 8ms);
        std::this_thread::sleep_for(120ms);  // 8 of the pause, 100 and more of work
    }
}

TEST_CASE("a thread sees that others run on its processor") {
    cpu_set_t all, first;
    REQUIRE(pthread_getaffinity_np(pthread_self(), sizeof(all), &all) == 0);
    CPU_ZERO(&first);
    for (int processor = 0; CPU_COUNT(&first) == 0; ++processor)
        if (CPU_ISSET(processor, &all)) CPU_SET(processor, &first);
    REQUIRE(pthread_setaffinity_np(pthread_self(), sizeof(first), &first) == 0);
    std::atomic<bool> done{false};
    std::thread other([&] {  // it inherits the processor
        while (!done) continue;
    });
    const int n_unseen = n_passed_trials();
    done = true;
    other.join();
    pthread_setaffinity_np(pthread_self(), sizeof(all), &all);
    CHECK(n_unseen <= 2);
}

TEST_CASE("a thread that stands still inside a task takes none for a while") {
    Workers workers(2);
    std::atomic<bool> is_inside{false};
    workers.run(2, [&](size_t, unsigned thread) {
        if (thread != 0 && !is_inside.exchange(true)) std::this_thread::sleep_for(std::chrono::milliseconds(50));
        while (!is_inside) std::this_thread::yield();  // the other thread has come
    });
    std::atomic<unsigned> n_elsewhere{0};
    const auto work = [&](size_t, unsigned thread) {
        n_elsewhere += thread != 0;
        for (const auto end = Clock::now() + std::chrono::microseconds(20); Clock::now() < end;) continue;
    };
    const auto begin = Clock::now();
    for (int list = 0; list < 20; ++list) workers.run(10, work);  // 4 ms of one thread, and the first pause is 8
    if (Clock::now() - begin < std::chrono::milliseconds(8)) CHECK(n_elsewhere == 0);

    if (available_processors() == 1) INLAY_SKIP("on one processor it stays away");
    while (n_elsewhere == 0 && Clock::now() - begin < std::chrono::seconds(60)) workers.run(10, work);
    if (n_elsewhere == 0 && !has_second_processor()) INLAY_SKIP("others keep the second processor busy");
    CHECK(n_elsewhere > 0);
}

TEST_CASE("a list that begins while the pool's thread pauses is shared with it later") {
    if (available_processors() == 1) INLAY_SKIP("on one processor it stays away");
    Workers workers(2);
    stall_once(workers);
    std::atomic<bool> is_shared{false};
    const auto end = Clock::now() + std::chrono::seconds(60);
    std::vector<std::atomic<uint8_t>> n_runs(Workers::kMaxTasks);
    workers.run(n_runs.size(), [&](size_t i, unsigned thread) {
        ++n_runs[i];
        if (thread != 0) is_shared = true;
        const auto pause = std::chrono::microseconds(20);
        for (const auto begin = Clock::now(); !is_shared && begin < end && Clock::now() - begin < pause;) continue;
    });
    CHECK(std::all_of(n_runs.begin(), n_runs.end(), [](const auto& n) { return n == 1; }));
    if (!is_shared && !has_second_processor()) INLAY_SKIP("others keep the second processor busy");
    CHECK(is_shared);
}

TEST_CASE("a pool is stopped while its thread pauses") {
    auto workers = std::make_unique<Workers>(2);
    for (int i = 0; i < 4; ++i) stall_once(*workers);  // the last pause is 512 ms
    const auto begin = Clock::now();
    workers.reset();
    CHECK(Clock::now() - begin < 250ms);
}
