#include "base/pool_thread.h"

#include <pthread.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "base/workers.h"

using namespace inlay;
using namespace std::chrono_literals;

namespace {

// Lists until the pool's thread has come and stood still in one of them, so that it pauses. It does not come where it
// has no processor to itself, but then it pauses too.
void stall_once(Workers& workers) {
    std::atomic<bool> has_stalled{false};
    for (const auto give_up = PoolThread::Clock::now() + 5s; !has_stalled && PoolThread::Clock::now() < give_up;)
        workers.run(2, [&](size_t, unsigned thread) {
            if (thread != 0 && !has_stalled.exchange(true)) std::this_thread::sleep_for(5ms);
            for (const auto end = PoolThread::Clock::now() + 20us; PoolThread::Clock::now() < end;) continue;
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
    int n_unseen = 0;
    for (int i = 0; i < 20; ++i) {
        ProcessorTrial trial;
        while (trial.goes_on()) continue;
        n_unseen += trial.has_passed();
    }
    done = true;
    other.join();
    pthread_setaffinity_np(pthread_self(), sizeof(all), &all);
    CHECK(n_unseen <= 2);
}

TEST_CASE("a pool is stopped while its thread pauses") {
    using Clock = PoolThread::Clock;
    auto workers = std::make_unique<Workers>(2);
    for (int i = 0; i < 4; ++i) stall_once(*workers);  // the last pause is 512 ms
    const auto begin = Clock::now();
    workers.reset();
    CHECK(Clock::now() - begin < 250ms);
}
