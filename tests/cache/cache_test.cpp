#include "cache/cache.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "tests/cache/prefix_marks.h"

using namespace inlay;
using namespace inlay::marks;

namespace {

CacheOptions budget(const KvLayout& layout, size_t n_blocks) {
    CacheOptions options;
    options.budget_bytes = layout.page_bytes * n_blocks;
    return options;
}

uint64_t always_equal(uint64_t, uint64_t, BlockTokens) {
    return 42;
}

}  // namespace

TEST_CASE("blocks are taken as a sequence grows and given back at once") {
    const KvLayout layout = small_layout({0, 0});
    Cache cache(layout, system_pages(), budget(layout, 10));
    Sequence sequence(cache);
    cache.append(sequence, counting(33));
    CHECK(cache.stats().n_used_blocks == 0);
    REQUIRE(compute(cache, sequence));
    CHECK(cache.stats().n_used_blocks == 3);
    CHECK(cache.stats().used_bytes == 3 * layout.page_bytes);
    CHECK(n_wrong(layout, sequence, 0) == 0);
    cache.truncate(sequence, 32);
    CHECK(cache.stats().n_used_blocks == 2);
    cache.truncate(sequence, 0);
    CHECK(cache.stats().n_used_blocks == 0);
    CHECK(cache.stats().n_cached_blocks == 2);
    CHECK(cache.stats().n_free_blocks == 8);
    cache.clear();
    CHECK(cache.stats().n_free_blocks == 10);
    CHECK(cache.stats().n_evicted_blocks == 2);
    cache.check_invariants();
}

TEST_CASE("a budget below one block of every group is an error") {
    const KvLayout layout = small_layout({0, 40});
    CHECK_THROWS_AS(Cache(layout, system_pages(), budget(layout, 1)), Error);
}

TEST_CASE("a prefix is taken over by whole blocks, never the last token") {
    const KvLayout layout = small_layout({0});
    Cache cache(layout, system_pages(), budget(layout, 20));
    Sequence first(cache);
    cache.append(first, counting(64));
    REQUIRE(compute(cache, first));

    Sequence same(cache);
    cache.append(same, counting(64));
    CHECK(cache.adopt_prefix(same) == 48);
    REQUIRE(compute(cache, same));
    CHECK(n_wrong(layout, same, 0) == 0);
    CHECK(cache.stats().n_used_blocks == 4);  // the duplicate of the last block was dropped
    CHECK(cache.stats().n_shared_blocks == 4);

    Sequence longer(cache);
    cache.append(longer, counting(65));
    CHECK(cache.adopt_prefix(longer) == 64);
    CHECK(cache.adopt_prefix(longer) == 0);
    CHECK(n_wrong(layout, longer, 0) == 0);

    Sequence salted(cache, 1);
    cache.append(salted, counting(65));
    CHECK(cache.adopt_prefix(salted) == 0);

    cache.release(first);
    Sequence later(cache);
    cache.append(later, counting(20));
    CHECK(cache.adopt_prefix(later) == 16);
    REQUIRE(compute(cache, later));
    cache.append(later, counting(60, 20));  // now its tokens are those of the others
    CHECK(cache.adopt_prefix(later) == 64 - 20);
    REQUIRE(compute(cache, later));
    CHECK(n_wrong(layout, later, 0) == 0);
    CHECK(cache.stats().n_prefix_hits == 4);
    CHECK(cache.stats().n_reused_tokens == 48 + 64 + 16 + 44);
    cache.check_invariants();
}

TEST_CASE("without reuse nothing is shared and nothing stays") {
    const KvLayout layout = small_layout({0, 40});
    CacheOptions options = budget(layout, 40);
    options.no_reuse = true;
    Cache cache(layout, system_pages(), options);
    Sequence first(cache);
    Sequence second(cache);
    for (Sequence* sequence : {&first, &second}) {
        cache.append(*sequence, counting(100));
        CHECK(cache.adopt_prefix(*sequence) == 0);
        REQUIRE(compute(cache, *sequence));
        CHECK(n_wrong(layout, *sequence, 0) == 0);
        cache.check_invariants();
    }
    CHECK(cache.stats().n_shared_blocks == 0);
    cache.release(first);
    CHECK(cache.stats().n_cached_blocks == 0);
    cache.check_invariants();
}

TEST_CASE("a partial block that others see is copied by whoever writes first") {
    const KvLayout layout = small_layout({0});
    Cache cache(layout, system_pages(), budget(layout, 20));
    Sequence first(cache);
    cache.append(first, counting(40));
    REQUIRE(compute(cache, first));
    Sequence second(cache);
    cache.append(second, counting(40));
    cache.adopt_prefix(second);
    REQUIRE(compute(cache, second));

    cache.truncate(second, 20);
    CHECK(second.pages(0)[1] == first.pages(0)[1]);
    cache.append(second, std::vector<int32_t>{900, 901});
    REQUIRE(compute(cache, second));
    CHECK(second.pages(0)[1] != first.pages(0)[1]);
    CHECK(n_wrong(layout, first, 0) == 0);
    CHECK(n_wrong(layout, second, 0) == 0);
    cache.check_invariants();

    // Alone with it, but the index still knows it.
    cache.release(second);
    cache.truncate(first, 24);
    cache.append(first, std::vector<int32_t>{900});
    REQUIRE(compute(cache, first));
    CHECK(n_wrong(layout, first, 0) == 0);
    cache.append(second, counting(40));
    CHECK(cache.stats().n_reused_tokens == 32);
    cache.truncate(second, 0);
    cache.append(second, counting(40));
    CHECK(cache.adopt_prefix(second) == 32);
    CHECK(n_wrong(layout, second, 0) == 0);
    cache.check_invariants();
}

TEST_CASE("a sequence that fills the cache can be cut and go on") {
    const KvLayout layout = GENERATE(small_layout({0}), small_layout({0, 0, 40, 40, 80, 80}));
    const size_t n_groups = layout.groups.size();
    Cache cache(layout, system_pages(), budget(layout, 4 * n_groups));
    Sequence sequence(cache);
    cache.append(sequence, counting(64));
    REQUIRE(compute(cache, sequence, 0, 16));
    cache.truncate(sequence, 60);
    cache.append(sequence, std::vector<int32_t>{7, 7, 7, 7});
    REQUIRE(compute(cache, sequence));
    CHECK(n_wrong(layout, sequence, 0) == 0);
    cache.check_invariants();
    cache.truncate(sequence, 20);  // its own tail is cached now, and must make room
    cache.append(sequence, counting(44, 500));
    REQUIRE(compute(cache, sequence));
    CHECK(n_wrong(layout, sequence, 0) == 0);
    cache.check_invariants();
}

TEST_CASE("what does not fit changes nothing and says how much is missing") {
    const KvLayout layout = small_layout({0, 40});
    Cache cache(layout, system_pages(), budget(layout, 10));
    Sequence first(cache);
    cache.append(first, counting(40));
    REQUIRE(compute(cache, first));
    Sequence second(cache);
    cache.append(second, counting(40, 1000));
    REQUIRE(cache.prepare(second, 16));
    write(layout, second, 0, 16);
    cache.commit(second, 16);
    cache.release(second);
    CHECK(cache.stats().n_cached_blocks == 2);

    cache.append(first, counting(60, 40));
    const BlockNeed need = cache.prepare(first, 60);
    CHECK_FALSE(need);
    CHECK(need.n_needed == 2 * 4);
    CHECK(need.n_available == 4);
    CHECK(cache.stats().n_evicted_blocks == 0);
    CHECK(first.n_blocks() == 3);
    cache.check_invariants();
    CHECK(cache.prepare(first, 8 + 16 + 16));  // both cached blocks are evicted
    CHECK(cache.stats().n_evicted_blocks == 2);
    cache.check_invariants();
}

TEST_CASE("the last token can be computed again") {
    const KvLayout layout = GENERATE(small_layout({0}), small_layout({0, 16}), small_layout({1}));
    Cache cache(layout, system_pages(), budget(layout, 40));
    for (const size_t n : {1u, 15u, 16u, 17u, 32u, 33u, 48u, 49u}) {
        Sequence sequence(cache);
        cache.append(sequence, counting(n, static_cast<int32_t>(n) * 100));
        REQUIRE(compute(cache, sequence));
        cache.forget_from(sequence, n - 1);
        CHECK(sequence.n_computed() == n - 1);
        CHECK(sequence.tokens().size() == n);
        CHECK(cache.adopt_prefix(sequence) == 0);
        REQUIRE(compute(cache, sequence));
        CHECK(n_wrong(layout, sequence, 0) == 0);
        cache.check_invariants();
    }
}

TEST_CASE("the least recently held go first, tails before heads") {
    const KvLayout layout = small_layout({0});
    Cache cache(layout, system_pages(), budget(layout, 6));
    Sequence sequence(cache);
    for (const int32_t first : {0, 1000}) {
        cache.append(sequence, counting(48, first));
        REQUIRE(compute(cache, sequence));
        cache.truncate(sequence, 0);
    }
    CHECK(cache.stats().n_cached_blocks == 6);
    cache.append(sequence, counting(16, 5000));
    REQUIRE(compute(cache, sequence));
    cache.check_invariants();

    Sequence older(cache);
    cache.append(older, counting(49));
    CHECK(cache.adopt_prefix(older) == 32);
    Sequence newer(cache);
    cache.append(newer, counting(49, 1000));
    CHECK(cache.adopt_prefix(newer) == 48);
    cache.check_invariants();
}

TEST_CASE("a block id that is used again, and a hash that always collides, never give a wrong hit") {
    const KvLayout layout = GENERATE(small_layout({0}), small_layout({0, 32}), small_layout({32}));
    CacheOptions options = budget(layout, 8 * layout.groups.size());
    options.prefix_hash = GENERATE(&hash_prefix, &always_equal);
    Cache cache(layout, system_pages(), options);
    // Each text evicts the one before it from a cache that holds little more than one.
    for (int32_t text = 0; text < 50; ++text) {
        Sequence sequence(cache);
        std::vector<int32_t> tokens = counting(100, text % 5);
        tokens[20 + static_cast<size_t>(text % 3) * 16] = 7777;
        cache.append(sequence, tokens);
        cache.adopt_prefix(sequence);
        CHECK(n_wrong(layout, sequence, 0) == 0);
        REQUIRE(compute(cache, sequence, 0, 16));
        CHECK(n_wrong(layout, sequence, 0) == 0);
        cache.check_invariants();
    }
    CHECK(cache.stats().n_evicted_blocks > 0);
}

TEST_CASE("window groups stay constant while a sequence grows, and cut sequences find their blocks again") {
    std::vector<uint32_t> windows(18, 512);
    for (size_t i = 5; i < 18; i += 6) windows[i] = 0;
    const KvLayout layout = small_layout(windows);
    REQUIRE(layout.groups.size() == 6);
    const size_t n_tokens = 4000;
    const size_t n_blocks = 250 + 5 * 70;
    Cache cache(layout, system_pages(), budget(layout, n_blocks));
    Sequence sequence(cache);
    cache.append(sequence, counting(n_tokens));
    while (sequence.n_computed() < n_tokens) {
        REQUIRE(cache.prepare(sequence, 100));
        write(layout, sequence, 0, 100);
        cache.commit(sequence, 100);
        CHECK(cache.stats().n_used_blocks <= blocks_of(sequence.n_computed()) + 5 * 34);
    }
    CHECK(layout.blocks_for(n_tokens, 100) <= n_blocks);
    CHECK(n_wrong(layout, sequence, 0) == 0);
    cache.check_invariants();

    // What left the windows lately is still cached: nothing to compute again.
    cache.truncate(sequence, n_tokens - 300);
    CHECK(sequence.n_computed() == n_tokens - 300);
    CHECK(n_wrong(layout, sequence, 0) == 0);
    cache.check_invariants();
    // Without it, computing goes back to where the windows reach the beginning.
    cache.clear();
    cache.truncate(sequence, n_tokens - 400);
    CHECK(sequence.n_computed() == 0);
    CHECK(sequence.tokens().size() == n_tokens - 400);
    cache.check_invariants();
}

TEST_CASE("a prefix with windows is found with only the blocks inside them") {
    const KvLayout layout = small_layout({0, 32});
    Cache cache(layout, system_pages(), budget(layout, 40));
    Sequence first(cache);
    cache.append(first, counting(160));
    REQUIRE(compute(cache, first, 0, 16));
    cache.clear();  // only what `first` holds is left: the last three blocks of the window group
    Sequence second(cache);
    cache.append(second, counting(161));
    CHECK(cache.adopt_prefix(second) == 160);
    CHECK(second.pages(1)[5] == nullptr);
    CHECK(second.pages(1)[8] != nullptr);
    CHECK(n_wrong(layout, second, 0) == 0);
    Sequence shorter(cache);
    cache.append(shorter, counting(100));
    CHECK(cache.adopt_prefix(shorter) == 0);
    REQUIRE(compute(cache, shorter));  // gives the window group the blocks it lacked
    CHECK(n_wrong(layout, shorter, 0) == 0);
    cache.check_invariants();
    Sequence again(cache);
    cache.append(again, counting(100));
    CHECK(cache.adopt_prefix(again) == 96);
    CHECK(n_wrong(layout, again, 0) == 0);
    cache.check_invariants();
}

TEST_CASE("what was prepared can be given up or committed in parts") {
    const KvLayout layout = small_layout({0, 40});
    Cache cache(layout, system_pages(), budget(layout, 20));
    Sequence sequence(cache);
    cache.append(sequence, counting(70));
    REQUIRE(cache.prepare(sequence, 50));
    write(layout, sequence, 0, 50);
    cache.commit(sequence, 20);
    cache.check_invariants();
    cache.commit(sequence, 30);
    CHECK(sequence.n_computed() == 50);
    CHECK_THROWS_AS(cache.commit(sequence, 1), Error);
    CHECK_THROWS_AS(cache.prepare(sequence, 21), Error);
    REQUIRE(cache.prepare(sequence, 20));
    CHECK(sequence.n_blocks() == 5);
    cache.forget_from(sequence, 50);
    CHECK(sequence.n_blocks() == 4);
    cache.check_invariants();
    REQUIRE(compute(cache, sequence));
    CHECK(n_wrong(layout, sequence, 0) == 0);
}
