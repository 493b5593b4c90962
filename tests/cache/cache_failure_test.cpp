// Every allocation of every call fails in turn: the call throws std::bad_alloc, nothing has changed, and the same call
// succeeds afterwards.
#include <catch2/catch.hpp>
#include <new>

#include "base/allocation.h"
#include "cache/cache.h"
#include "tests/cache/prefix_marks.h"

using namespace inlay;
using namespace inlay::marks;

namespace {

// Returns how often `call` failed before it succeeded; `check` is called after each failure.
template <typename Call, typename Check>
int64_t fail_each_allocation(Call call, Check check) {
    for (int64_t n = 0;; ++n) {
        inlayx_fail_allocation(n);
        bool has_failed = false;
        try {
            call();
        } catch (const std::bad_alloc&) {
            has_failed = true;
        }
        inlayx_fail_allocation(-1);
        if (!has_failed) return n;
        check();
    }
}

}  // namespace

TEST_CASE("creation fails at each allocation and leaves nothing") {
    const KvLayout layout = small_layout({0, 40});
    CacheOptions options;
    options.budget_bytes = layout.page_bytes * 40;
    const auto provider = system_pages();
    const auto n_failed = fail_each_allocation([&] { Cache cache(layout, provider, options); }, [] {});
    CHECK(n_failed >= 6);
    Cache cache(layout, provider, options);
    CHECK(fail_each_allocation([&] { Sequence sequence(cache); }, [&] { cache.check_invariants(); }) >= 1);
}

TEST_CASE("calls on a sequence fail at each allocation and change nothing") {
    const KvLayout layout = small_layout({0, 40, 40});
    CacheOptions options;
    options.budget_bytes = layout.page_bytes * 500;
    Cache cache(layout, system_pages(), options);
    int64_t n_failed = 0;
    for (int32_t text = 0; text < 8; ++text) {
        const std::vector<int32_t> tokens = counting(300, text / 2);  // every second one finds the one before
        Sequence sequence(cache);
        const auto is_unchanged = [&](size_t n_tokens, size_t n_computed, const CacheStats& before) {
            return [&cache, &sequence, &layout, n_tokens, n_computed, before] {
                cache.check_invariants();
                CHECK(sequence.tokens().size() == n_tokens);
                CHECK(sequence.n_computed() == n_computed);
                CHECK(cache.stats().n_used_blocks == before.n_used_blocks);
                CHECK(cache.stats().n_cached_blocks == before.n_cached_blocks);
                CHECK(n_wrong(layout, sequence, 0) == 0);
            };
        };
        n_failed += fail_each_allocation([&] { cache.append(sequence, tokens); }, is_unchanged(0, 0, cache.stats()));
        n_failed += fail_each_allocation([&] { cache.adopt_prefix(sequence); }, is_unchanged(300, 0, cache.stats()));
        CHECK((sequence.n_computed() > 0) == (text % 2 == 1));
        while (sequence.n_computed() < 300) {
            const size_t n = std::min<size_t>(70, 300 - sequence.n_computed());
            n_failed += fail_each_allocation([&] { cache.prepare(sequence, n); },
                                             is_unchanged(300, sequence.n_computed(), cache.stats()));
            write(layout, sequence, 0, n);
            // Room was promised: these do not allocate.
            CHECK(fail_each_allocation([&] { cache.commit(sequence, n); }, [] {}) == 0);
        }
        CHECK(fail_each_allocation([&] { cache.truncate(sequence, 150); }, [] {}) == 0);
        CHECK(n_wrong(layout, sequence, 0) == 0);
        cache.check_invariants();
    }
    CHECK(n_failed > 20);
    CHECK(fail_each_allocation([&] { cache.clear(); }, [] {}) == 0);
}
