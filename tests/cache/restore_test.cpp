// Sequences that come from outside: they hold what they would hold had they been computed here, and nobody finds it
// unless it may be shared.
#include <catch2/catch.hpp>

#include "base/error.h"
#include "cache/cache.h"
#include "tests/cache/prefix_marks.h"

using namespace inlay;
using namespace inlay::marks;

namespace {

// What a sequence of a cache of its own holds, to be restored in another.
struct Saved {
    std::vector<int32_t> tokens;
    size_t n_computed;
    std::vector<size_t> first_blocks;
    std::vector<std::byte> pages;

    Saved(const KvLayout& layout, std::vector<int32_t> all_tokens, size_t n)
        : tokens(std::move(all_tokens)), n_computed(n) {
        Cache cache{layout, system_pages(), {.budget_bytes = layout.page_bytes * 100}};
        Sequence sequence(cache);
        cache.append(sequence, std::span(tokens).first(n));
        REQUIRE(compute(cache, sequence));
        for (size_t group = 0; group < layout.groups.size(); ++group) {
            std::byte* const* group_pages = sequence.pages(group);
            size_t first = 0;
            while (first < sequence.n_blocks() && !group_pages[first]) ++first;
            first_blocks.push_back(first);
            for (size_t i = first; i < sequence.n_blocks(); ++i)
                pages.insert(pages.end(), group_pages[i], group_pages[i] + layout.page_bytes);
        }
    }
    BlockNeed restore(Cache& cache, Sequence& sequence, bool may_share) const {
        return cache.restore(sequence, tokens, {n_computed, first_blocks, pages.data()}, may_share);
    }
};

struct Fixture {
    KvLayout layout = small_layout({0, 40});
    Cache cache{layout, system_pages(), {.budget_bytes = layout.page_bytes * 40}};

    void check(const Sequence& sequence) {
        cache.check_invariants();
        CHECK(n_wrong(layout, sequence, 0) == 0);
    }
    size_t found(const std::vector<int32_t>& tokens) {
        Sequence sequence(cache);
        cache.append(sequence, tokens);
        cache.adopt_prefix(sequence);
        check(sequence);
        return sequence.n_computed();
    }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a restored sequence goes on at any length") {
    for (const bool may_share : {false, true}) {
        for (size_t n = 0; n <= 120; ++n) {
            CAPTURE(may_share, n);
            const Saved saved(layout, counting(121), n);
            Sequence sequence(cache);
            REQUIRE(saved.restore(cache, sequence, may_share));
            CHECK(sequence.n_computed() == n);
            CHECK(sequence.tokens().size() == 121);
            CHECK(sequence.is_private() == (!may_share && n > 0));
            check(sequence);
            REQUIRE(compute(cache, sequence));
            check(sequence);
            cache.clear();
        }
        CHECK(cache.stats().n_used_blocks == 0);
    }
}

TEST_CASE_METHOD(Fixture, "private blocks are found by nobody, and go at once") {
    const Saved saved(layout, counting(121), 100);
    {
        Sequence sequence(cache);
        REQUIRE(saved.restore(cache, sequence, false));
        REQUIRE(compute(cache, sequence));
        CHECK(found(counting(121)) == 0);
        Sequence fork(cache);
        cache.fork(sequence, fork, 119);
        CHECK(fork.is_private());
        check(fork);
        cache.append(fork, counting(30, 500));
        REQUIRE(compute(cache, fork));
        check(fork);
        check(sequence);
        Sequence waiting(cache);
        cache.append(waiting, counting(121));
        cache.truncate(sequence, 120);
        check(sequence);
        CHECK(sequence.is_private());
        CHECK_FALSE(cache.brings_next_block(sequence, 20, waiting));
    }
    CHECK(cache.stats().n_cached_blocks == 0);
    CHECK(cache.stats().n_used_blocks == 0);
}

TEST_CASE_METHOD(Fixture, "a sequence that lost all restored blocks shares again") {
    const Saved saved(layout, counting(100), 100);
    Sequence sequence(cache);
    REQUIRE(saved.restore(cache, sequence, false));
    cache.release(sequence);
    CHECK_FALSE(sequence.is_private());
    cache.check_invariants();
    Sequence cut(cache);
    REQUIRE(saved.restore(cache, cut, false));
    cache.truncate(cut, 50);  // below its window, of which nothing is kept: all is computed again
    CHECK(cut.n_computed() == 0);
    CHECK_FALSE(cut.is_private());
    REQUIRE(compute(cache, sequence));
    check(sequence);
    CHECK(found(counting(121)) == 96);
}

TEST_CASE_METHOD(Fixture, "shared blocks are found, and equal ones are held once") {
    const Saved saved(layout, counting(121), 100);
    Sequence sequence(cache);
    REQUIRE(saved.restore(cache, sequence, true));
    CHECK(found(counting(121)) == 96);
    const uint64_t n_used = cache.stats().n_used_blocks;
    Sequence second(cache);
    REQUIRE(saved.restore(cache, second, true));
    check(second);
    CHECK(cache.stats().n_used_blocks == n_used + 2);  // the partial block of each group
    cache.release(sequence);
    cache.release(second);
    cache.check_invariants();
    CHECK(found(counting(121)) == 96);
    for (int32_t i = 0; i < 20; ++i) {  // until nothing of it is left
        Sequence other(cache);
        cache.append(other, counting(60, 1000 * i + 500));
        REQUIRE(compute(cache, other));
        cache.check_invariants();
    }
    CHECK(found(counting(121)) == 0);
}

TEST_CASE_METHOD(Fixture, "only windows: nodes without blocks stand for what left them") {
    const KvLayout windows = small_layout({20, 40});
    Cache other{windows, system_pages(), {.budget_bytes = windows.page_bytes * 40}};
    const Saved saved(windows, counting(121), 100);
    Sequence sequence(other);
    REQUIRE(saved.restore(other, sequence, true));
    other.check_invariants();
    CHECK(n_wrong(windows, sequence, 0) == 0);
    REQUIRE(compute(other, sequence));
    other.check_invariants();
    other.release(sequence);
    other.check_invariants();
    other.clear();
    other.check_invariants();
}

TEST_CASE_METHOD(Fixture, "a restore that does not fit changes nothing") {
    const Saved saved(layout, counting(200), 200);  // 13 blocks and at most 4
    Sequence other(cache);
    cache.append(other, counting(360, 700));
    REQUIRE(compute(cache, other));
    const CacheStats before = cache.stats();
    Sequence sequence(cache);
    const BlockNeed need = saved.restore(cache, sequence, true);
    CHECK_FALSE(need);
    CHECK_FALSE(need.may_come);
    CHECK(sequence.tokens().empty());
    CHECK(cache.stats().n_used_blocks == before.n_used_blocks);
    CHECK(cache.stats().n_cached_blocks == before.n_cached_blocks);
    check(other);
    cache.truncate(other, 100);
    CHECK(saved.restore(cache, sequence, true));
    check(sequence);
    check(other);
    CHECK_THROWS_AS(saved.restore(cache, sequence, true), Error);
}

TEST_CASE_METHOD(Fixture, "a restore preempts who has no text, and nobody else") {
    Cache full{layout, system_pages(), {.budget_bytes = layout.page_bytes * 40, .when_full = WhenFull::kPreempt}};
    const Saved saved(layout, counting(200), 200);
    Sequence other(full);
    full.append(other, counting(360, 700));
    REQUIRE(compute(full, other));
    Sequence sequence(full);
    CHECK_FALSE(saved.restore(full, sequence, false));  // it is in its turn
    full.end_turn(other);
    CHECK(saved.restore(full, sequence, false));
    full.check_invariants();
    CHECK(other.n_computed() == 0);
    CHECK(n_wrong(layout, sequence, 0) == 0);
}
