#include "base/workers.h"

#include <algorithm>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <ctime>
#include <numeric>
#include <vector>

using inlay::Workers;

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
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const std::clock_t before = std::clock();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const double seconds = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    CHECK(seconds < 0.1);  // of all threads together, which would be 1.2 if they spun
}
