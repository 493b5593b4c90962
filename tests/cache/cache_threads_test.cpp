// Sessions on several threads share one cache; with a thread sanitizer this says that nothing is touched unlocked.
#include <atomic>
#include <catch2/catch.hpp>
#include <random>
#include <thread>

#include "cache/cache.h"
#include "tests/cache/prefix_marks.h"

using namespace inlay;
using namespace inlay::marks;

TEST_CASE("threads grow, share, cut and release sequences of one cache") {
    const KvLayout layout = small_layout({0, 40});
    CacheOptions options;
    options.budget_bytes = layout.page_bytes * 2 * 40;
    Cache cache(layout, system_pages(), options);
    std::atomic<size_t> wrong{0};

    const auto work = [&](uint64_t seed) {
        std::mt19937_64 random(seed);
        Sequence sequence(cache);
        for (size_t turn = 0; turn < 400; ++turn) {
            std::vector<int32_t> tokens(1 + random() % 60);
            for (int32_t& token : tokens) token = random() % 50 == 0;
            cache.append(sequence, tokens);
            cache.adopt_prefix(sequence);
            while (sequence.n_computed() < sequence.tokens().size()) {
                const size_t n = std::min<size_t>(30, sequence.tokens().size() - sequence.n_computed());
                if (!cache.prepare(sequence, n)) break;
                write(layout, sequence, 0, n);
                cache.commit(sequence, n);
            }
            wrong += n_wrong(layout, sequence, 0);
            if (turn % 3 == 0) cache.truncate(sequence, random() % 200);
            if (turn % 7 == 0) cache.release(sequence);
            if (turn % 20 == 0) cache.check_invariants();
            if (sequence.tokens().size() > 200) cache.truncate(sequence, 0);
        }
    };
    std::thread first(work, 1);
    std::thread second(work, 2);
    std::thread third(work, 3);
    first.join();
    second.join();
    third.join();
    CHECK(wrong == 0);
    CHECK(cache.stats().n_used_blocks == 0);
    CHECK(cache.stats().n_prefix_hits > 0);
    cache.check_invariants();
}
