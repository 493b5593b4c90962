// Prefixes that come from outside: they are there as if sequences had computed them here, or nothing has changed.
#include <catch2/catch.hpp>
#include <list>
#include <random>

#include "base/error.h"
#include "cache/cache.h"
#include "tests/cache/prefix_marks.h"

using namespace inlay;
using namespace inlay::marks;

namespace {

// The pages of a prefix as a cache of its own computes them.
struct Prefix {
    std::vector<int32_t> tokens;
    uint64_t extra_key;
    std::vector<std::vector<std::byte>> pages;  // [n_groups * blocks], empty where none is needed

    Prefix(const KvLayout& layout, std::vector<int32_t> all, uint64_t key) : tokens(std::move(all)), extra_key(key) {
        Cache cache{layout, system_pages(), {.budget_bytes = layout.page_bytes * 100}};
        Sequence sequence(cache, key);
        cache.append(sequence, tokens);
        REQUIRE(compute(cache, sequence, key));
        for (size_t group = 0; group < layout.groups.size(); ++group) {
            for (size_t i = 0; i < sequence.n_blocks(); ++i) {
                auto& page = pages.emplace_back();
                if (i < layout.groups[group].first_seen_block(tokens.size())) continue;
                page.assign(sequence.pages(group)[i], sequence.pages(group)[i] + layout.page_bytes);
            }
        }
    }
};

struct Fixture {
    KvLayout layout;
    Cache cache;
    std::list<Sequence> held;  // by whom prefixes are

    Fixture(const std::vector<uint32_t>& windows, size_t n_blocks)
        : layout(small_layout(windows)),
          cache{layout, system_pages(), {.budget_bytes = layout.page_bytes * n_blocks}} {}

    // Pages of equal beginnings are one, as the caller promises.
    BlockNeed restore(const std::vector<const Prefix*>& prefixes) {
        std::list<std::vector<const std::byte*>> all_pages;
        std::vector<RestoredPrefix> restored;
        const size_t n_before = held.size();
        for (size_t p = 0; p < prefixes.size(); ++p) {
            const Prefix& prefix = *prefixes[p];
            const size_t n_blocks = prefix.tokens.size() / kBlockTokens;
            auto& pages = all_pages.emplace_back();
            for (size_t at = 0; at < prefix.pages.size(); ++at) {
                const size_t group = at / n_blocks;
                const size_t block = at % n_blocks;
                const auto* page = prefix.pages[at].empty() ? nullptr : prefix.pages[at].data();
                for (size_t q = 0; page && q < p; ++q) {
                    const Prefix& other = *prefixes[q];
                    const size_t n_same = (block + 1) * kBlockTokens;
                    const size_t n_other = other.tokens.size() / kBlockTokens;
                    const bool is_same =
                        other.extra_key == prefix.extra_key && other.tokens.size() >= n_same &&
                        std::equal(other.tokens.begin(), other.tokens.begin() + static_cast<long>(n_same),
                                   prefix.tokens.begin());
                    if (!is_same || other.pages[group * n_other + block].empty()) continue;
                    page = other.pages[group * n_other + block].data();
                    break;
                }
                pages.push_back(page);
            }
            held.emplace_back(cache, prefix.extra_key, true);
            restored.push_back({held.back(), prefix.tokens, pages});
        }
        const BlockNeed need = cache.restore_prefixes(restored);
        cache.check_invariants();
        if (!need)
            while (held.size() > n_before) held.pop_back();
        for (const Sequence& sequence : held) CHECK(n_wrong(layout, sequence, sequence.extra_key()) == 0);
        return need;
    }
    size_t found(std::vector<int32_t> tokens, uint64_t key = 0) {
        tokens.push_back(-1);
        Sequence sequence(cache, key);
        cache.append(sequence, tokens);
        cache.adopt_prefix(sequence);
        cache.check_invariants();
        CHECK(n_wrong(layout, sequence, key) == 0);
        return sequence.n_computed();
    }
};

std::vector<int32_t> joined(std::vector<int32_t> tokens, const std::vector<int32_t>& more) {
    tokens.insert(tokens.end(), more.begin(), more.end());
    return tokens;
}

const std::vector<std::vector<uint32_t>> kWindows = {{0}, {0, 40}, {40}, {0, 20, 40}};

}  // namespace

TEST_CASE("prefixes are restored together, with what they share once") {
    for (const auto& windows : kWindows) {
        CAPTURE(windows);
        Fixture fixture(windows, 60);
        const std::vector<int32_t> common = counting(64);
        const Prefix first(fixture.layout, common, 0);
        const Prefix longer(fixture.layout, joined(common, counting(48, 900)), 0);
        const Prefix other(fixture.layout, common, 5);
        REQUIRE(fixture.restore({&first, &longer, &other, &longer}));
        CHECK(fixture.found(first.tokens) == 64);
        CHECK(fixture.found(longer.tokens) == 112);
        CHECK(fixture.found(common, 5) == 64);
        CHECK(fixture.found(common, 6) == 0);
        const uint64_t n_used = fixture.cache.stats().n_used_blocks;
        REQUIRE(fixture.restore({&longer}));  // it is there
        CHECK(fixture.cache.stats().n_used_blocks == n_used);
        fixture.held.clear();
        CHECK(fixture.cache.stats().n_used_blocks == 0);
        CHECK(fixture.found(longer.tokens) == 112);  // cached
        fixture.cache.clear();
        fixture.cache.check_invariants();
        CHECK(fixture.cache.stats().n_cached_blocks == 0);
    }
}

TEST_CASE("prefixes that do not fit change nothing, promised blocks stay promised") {
    Fixture fixture({0, 40}, 20);
    const Prefix prefix(fixture.layout, counting(96), 0);  // 6 + 3 blocks
    Sequence running(fixture.cache);
    fixture.cache.append(running, counting(32, 700));
    REQUIRE(fixture.cache.prepare(running, 32, {.promised_end = 80}));
    write(fixture.layout, running, 0, 32);
    fixture.cache.commit(running, 32);
    REQUIRE(fixture.cache.stats().n_promised_blocks > 4);
    const CacheStats before = fixture.cache.stats();
    const Prefix second(fixture.layout, counting(32, 300), 0);
    const BlockNeed need = fixture.restore({&prefix, &second});
    CHECK_FALSE(need);
    CHECK(need.n_needed == 9 + 4);
    CHECK(fixture.cache.stats().n_used_blocks == before.n_used_blocks);
    CHECK(fixture.cache.stats().n_free_blocks == before.n_free_blocks);
    fixture.cache.end_turn(running);
    REQUIRE(fixture.restore({&prefix, &second}));
}

TEST_CASE("what the cache has of a prefix is not given up for what it lacks") {
    Fixture fixture({0}, 10);
    const Prefix oldest(fixture.layout, counting(64), 0);
    for (const auto& tokens : {counting(64), counting(96, 500)}) {
        Sequence sequence(fixture.cache);
        fixture.cache.append(sequence, tokens);
        REQUIRE(compute(fixture.cache, sequence));
    }
    REQUIRE(fixture.cache.stats().n_cached_blocks == 10);
    const Prefix second(fixture.layout, counting(32, 800), 0);
    const BlockNeed need = fixture.restore({&oldest, &second});
    CHECK(need.n_needed == 4 + 2);
    CHECK(fixture.cache.stats().n_evicted_blocks == 2);
    CHECK(fixture.found(counting(96, 500)) == 64);
}

TEST_CASE("prefixes are restored into any cache") {
    std::mt19937 random(3);
    for (const auto& windows : kWindows) {
        Fixture fixture(windows, 50);
        const auto some_tokens = [&](size_t n) {
            std::vector<int32_t> tokens;
            for (size_t i = 0; i < n; ++i)  // beginnings in common, at the granularity of blocks and below
                tokens.push_back(static_cast<int32_t>(i % 24 == 0 ? random() % 2 : i));
            return tokens;
        };
        size_t n_restored = 0;
        size_t n_refused = 0;
        for (int round = 0; round < 400; ++round) {
            CAPTURE(windows, round);
            {  // others compute, and leave cached blocks
                Sequence sequence(fixture.cache, random() % 2);
                fixture.cache.append(sequence, some_tokens(1 + random() % 150));
                fixture.cache.adopt_prefix(sequence);
                compute(fixture.cache, sequence, sequence.extra_key());
                fixture.cache.check_invariants();
            }
            std::list<Prefix> prefixes;
            std::vector<const Prefix*> all;
            for (size_t n = 1 + random() % 3; n-- > 0;)
                all.push_back(
                    &prefixes.emplace_back(fixture.layout, some_tokens(16 + random() % 8 * 16), random() % 2));
            const CacheStats before = fixture.cache.stats();
            if (fixture.restore(all)) {
                ++n_restored;
                for (const Prefix* prefix : all)
                    CHECK(fixture.found(prefix->tokens, prefix->extra_key) == prefix->tokens.size());
            } else {
                ++n_refused;
                CHECK(fixture.cache.stats().n_used_blocks == before.n_used_blocks);
                CHECK(fixture.cache.stats().n_cached_blocks == before.n_cached_blocks);
            }
            while (!fixture.held.empty() && random() % 3 != 0) fixture.held.pop_front();
            fixture.cache.check_invariants();
        }
        CHECK(n_restored > 50);
        CHECK(n_refused > 5);
    }
}
