#include "base/workers.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cfenv>
#include <chrono>
#include <ctime>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "tests/reference_data.h"
#include "tests/sanitized.h"

using inlay::available_processors;
using inlay::Error;
using inlay::Workers;

namespace {

constexpr auto kLent = Workers::Threads::kLent;

// Host threads inside a lent pool.
class LentThreads {
public:
    LentThreads(Workers& workers, unsigned n) : workers_(workers) {
        for (unsigned i = 0; i < n; ++i)
            threads_.emplace_back([this] {
                ++n_begun_;
                workers_.work_until_stopped();
            });
        while (n_begun_ < n) std::this_thread::yield();
    }
    ~LentThreads() {
        workers_.stop();
        for (std::thread& thread : threads_) thread.join();
    }
    LentThreads(const LentThreads&) = delete;
    LentThreads& operator=(const LentThreads&) = delete;

private:
    Workers& workers_;
    std::atomic<unsigned> n_begun_{0};
    std::vector<std::thread> threads_;
};

// Processor time of all threads together while the calling one sleeps.
double seconds_used_while_asleep() {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const std::clock_t before = std::clock();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
}

// Several callers at once, each with many lists; every task writes what only its list would. Counts what was not so.
uint64_t wrong_results(Workers& workers, unsigned n_callers, int n_lists) {
    std::atomic<uint64_t> n_wrong{0};
    std::vector<std::thread> callers;
    for (unsigned caller = 0; caller < n_callers; ++caller)
        callers.emplace_back([&, caller] {
            std::vector<uint64_t> out(200);
            std::vector<std::atomic<int>> users(workers.n_threads());
            for (int list = 0; list < n_lists; ++list) {
                const size_t n = 1 + static_cast<size_t>(list) % out.size();
                std::fill(out.begin(), out.end(), 0);
                workers.run(n, [&](size_t task, unsigned thread) {
                    n_wrong += users.at(thread).fetch_add(1) != 0;  // two threads with one number
                    out[task] += 1000 * caller + static_cast<uint64_t>(list);
                    users.at(thread).fetch_sub(1);
                });
                for (size_t task = 0; task < out.size(); ++task)
                    n_wrong += out[task] != (task < n ? 1000 * caller + static_cast<uint64_t>(list) : 0);
            }
        });
    for (std::thread& caller : callers) caller.join();
    return n_wrong;
}

}  // namespace

TEST_CASE("each thread begins with a range of its own", "[workers]") {
    constexpr size_t kTasks = 10;
    using Clock = std::chrono::steady_clock;
    Workers workers(2);
    const auto end = Clock::now() + std::chrono::seconds(60);  // a thread that stood still pauses for a while
    for (int n_met = 0; n_met < 20;) {
        std::atomic<bool> is_first_running{false};
        std::atomic<bool> is_half_running{false};
        std::atomic<bool> both_met{false};
        workers.run(kTasks, [&](size_t i, unsigned) {
            const auto deadline = Clock::now() + std::chrono::milliseconds(100);
            std::atomic<bool>& other = i == 0 ? is_half_running : is_first_running;
            if (i == 0) is_first_running = true;
            if (i == kTasks / 2) is_half_running = true;
            // Neither ends before the other runs, so neither thread can have come to both.
            while ((i == 0 || i == kTasks / 2) && !other && Clock::now() < deadline) std::this_thread::yield();
            if (i == 0 && other) both_met = true;
        });
        n_met += both_met;
        REQUIRE(Clock::now() < end);
    }
}

TEST_CASE("each task runs once, on a thread of the pool") {
    for (unsigned n_threads : {1u, 2u, 5u}) {
        Workers workers(n_threads);
        REQUIRE(workers.n_threads() == n_threads);
        for (size_t n_tasks : {size_t{0}, size_t{1}, size_t{2}, size_t{3}, size_t{100}, size_t{10000}}) {
            std::vector<std::atomic<int>> runs(n_tasks);
            std::atomic<bool> known_thread{true};
            workers.run(n_tasks, [&](size_t task, unsigned thread) {
                runs[task].fetch_add(1);
                if (thread >= n_threads) known_thread = false;
            });
            CHECK(std::all_of(runs.begin(), runs.end(), [](const auto& n) { return n == 1; }));
            CHECK(known_thread);
        }
    }
}

TEST_CASE("many short runs follow each other") {
    Workers workers(3);
    std::atomic<uint64_t> sum{0};
    for (uint64_t run = 0; run < 20000; ++run)
        workers.run(7, [&](size_t task, unsigned) { sum.fetch_add(task, std::memory_order_relaxed); });
    CHECK(sum == 20000 * 21);
}

TEST_CASE("ranges cover everything once") {
    Workers workers(2);
    std::vector<int> seen(1001);
    workers.run_ranges(seen.size(), 8, [&](size_t first, size_t end) {
        for (size_t i = first; i < end; ++i) ++seen[i];
    });
    CHECK(std::accumulate(seen.begin(), seen.end(), 0) == 1001);
    CHECK(*std::min_element(seen.begin(), seen.end()) == 1);
}

TEST_CASE("a pool without work sleeps") {
    Workers workers(4);
    workers.run(100, [](size_t, unsigned) {});
    CHECK(seconds_used_while_asleep() < 0.1);  // of all threads together, which would be 1.2 if they spun
}

TEST_CASE("a lent pool works with as many threads as are inside") {
    Workers workers(4, kLent);
    CHECK(workers.n_threads() == 4);
    CHECK(wrong_results(workers, 1, 200) == 0);  // none: the caller does all
    for (const unsigned n_lent : {1u, 3u}) {
        Workers pool(4, kLent);
        const LentThreads lent(pool, n_lent);
        CHECK(wrong_results(pool, 1, 2000) == 0);
        CHECK(seconds_used_while_asleep() < 0.1);
        CHECK(wrong_results(pool, 1, 100) == 0);
    }
}

TEST_CASE("lent threads compute, in the default floating-point mode, and get theirs back") {
    Workers workers(2, kLent);
    std::atomic<bool> is_back{false};
    std::thread lent([&] {
        std::fesetround(FE_UPWARD);
        workers.work_until_stopped();
        is_back = std::fegetround() == FE_UPWARD;
    });
    std::atomic<bool> lent_thread_ran{false};
    std::atomic<bool> other_mode{false};
    while (!lent_thread_ran)
        workers.run(50, [&](size_t, unsigned thread) {
            if (thread != 1) return;
            lent_thread_ran = true;
            if (std::fegetround() != FE_TONEAREST) other_mode = true;
        });
    CHECK_FALSE(other_mode);
    workers.stop();
    lent.join();
    CHECK(is_back);
}

TEST_CASE("a lent pool takes n_threads - 1 threads, and none after it was stopped") {
    Workers workers(2, kLent);
    std::atomic<bool> is_refused{false};
    {
        std::atomic<int> n_inside{0};
        const auto lend = [&] {
            try {
                ++n_inside;
                workers.work_until_stopped();
            } catch (const Error& error) {
                is_refused = error.status() == INLAY_E_STATE;
            }
        };
        std::thread first(lend);
        while (n_inside == 0) std::this_thread::yield();
        std::thread second(lend);
        while (!is_refused) std::this_thread::yield();  // whichever came later
        CHECK(wrong_results(workers, 1, 100) == 0);
        workers.stop();
        first.join();
        second.join();
    }
    workers.work_until_stopped();  // stopped for good
    CHECK(wrong_results(workers, 2, 100) == 0);
}

TEST_CASE("callers share a pool, also more callers than lists have places") {
    for (const unsigned n_callers : {2u, 3u, 20u}) {
        CAPTURE(n_callers);
        Workers workers(4);
        CHECK(wrong_results(workers, n_callers, 600) == 0);
    }
    Workers lent_pool(3, kLent);
    const LentThreads lent(lent_pool, 2);
    CHECK(wrong_results(lent_pool, 3, 600) == 0);
}

TEST_CASE("a caller does not wait for the tasks of another") {
    Workers workers(3);
    std::atomic<bool> go_on{false};
    std::atomic<int> n_held{0};
    std::thread holder([&] {
        workers.run(8, [&](size_t, unsigned) {
            ++n_held;
            while (!go_on) std::this_thread::yield();
        });
    });
    while (n_held < 3) std::this_thread::yield();  // all threads of the pool
    CHECK(wrong_results(workers, 1, 50) == 0);
    CHECK(n_held == 3);
    go_on = true;
    holder.join();
}

TEST_CASE("threads come, and the pool is stopped, while lists are worked off") {
    for (int round = 0; round < 20; ++round) {
        Workers workers(4, kLent);
        std::atomic<bool> done{false};
        std::atomic<uint64_t> n_wrong{0};
        std::thread caller([&] {
            while (!done) n_wrong += wrong_results(workers, 2, 20);
        });
        std::vector<std::thread> hosts;
        for (int i = 0; i < 3; ++i) hosts.emplace_back([&] { workers.work_until_stopped(); });
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        workers.stop();
        for (std::thread& host : hosts) host.join();
        done = true;
        caller.join();
        CHECK(n_wrong == 0);
    }
}

TEST_CASE("the pool serves callers in turn, not one after the other") {
    if (available_processors() == 1) INLAY_SKIP("needs two processors");
    Workers workers(2);
    std::atomic<bool> is_served{false};
    const auto spin = [] {
        const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
        while (std::chrono::steady_clock::now() < end) {
        }
    };
    std::atomic<bool> long_one_runs{false};
    std::atomic<bool> long_one_is_over{false};
    std::thread long_caller([&] {
        workers.run(Workers::kMaxTasks, [&](size_t, unsigned thread) {
            if (thread == 1) long_one_runs = true;
            if (!is_served) spin();
        });
        long_one_is_over = true;
    });
    while (!long_one_runs) std::this_thread::yield();  // the pool's thread is at it
    bool was_over = false;
    for (int i = 0; i < 2000 && !is_served; ++i) {
        was_over = long_one_is_over;
        workers.run(50, [&](size_t, unsigned thread) {
            spin();
            if (thread == 1) is_served = true;
        });
    }
    CHECK(is_served);
    CHECK_FALSE(was_over);
    is_served = true;
    long_caller.join();
}

TEST_CASE("a system that gives no thread is an error that says so") {
    if (inlay::test::kSlowed) return;  // sanitizers choose the size of stacks themselves, an emulator maps them
    pthread_attr_t before;
    REQUIRE(pthread_getattr_default_np(&before) == 0);
    pthread_attr_t huge = before;
    REQUIRE(pthread_attr_setstacksize(&huge, size_t{1} << 46) == 0);
    REQUIRE(pthread_setattr_default_np(&huge) == 0);
    std::string sentence;
    try {
        const Workers workers(3);
    } catch (const Error& error) {
        CHECK(error.status() == INLAY_E_OUT_OF_MEMORY);
        sentence = error.sentence();
    }
    REQUIRE(pthread_setattr_default_np(&before) == 0);
    CHECK(sentence.find("compute thread 1 of 2 could not be started: ") == 0);
    CHECK(sentence.size() > 45);
}
