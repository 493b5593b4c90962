// Forks share blocks; the first to write into a shared partial block copies it.
#include <catch2/catch.hpp>

#include "cache/cache.h"
#include "tests/cache/prefix_marks.h"

using namespace inlay;
using namespace inlay::marks;

namespace {

struct Fixture {
    KvLayout layout = small_layout({0, 40});
    Cache cache{layout, system_pages(), {.budget_bytes = layout.page_bytes * 60}};

    uint64_t n_used() const { return cache.stats().n_used_blocks; }
    void check(const Sequence& sequence) {
        cache.check_invariants();
        CHECK(n_wrong(layout, sequence, 0) == 0);
    }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a fork takes no block before someone writes, and then one in each group") {
    Sequence parent(cache);
    cache.append(parent, counting(37));
    REQUIRE(compute(cache, parent));
    const uint64_t n_used_before = n_used();
    Sequence child(cache);
    cache.fork(parent, child, 37);
    CHECK(child.n_computed() == 37);
    CHECK(n_used() == n_used_before);
    check(child);

    const int32_t other[] = {900};
    cache.append(child, other);
    REQUIRE(compute(cache, child));
    CHECK(n_used() == n_used_before + 2);  // the partial block, in both groups
    check(child);
    check(parent);

    const int32_t next[] = {901};
    cache.append(parent, next);
    REQUIRE(compute(cache, parent));
    CHECK(n_used() == n_used_before + 2);  // nobody else has the parent's any more
    check(child);
    check(parent);
}

TEST_CASE_METHOD(Fixture, "a fork anywhere shares what is left of its beginning") {
    Sequence parent(cache);
    cache.append(parent, counting(200));
    REQUIRE(compute(cache, parent));
    for (size_t n : {size_t{0}, size_t{1}, size_t{16}, size_t{100}, size_t{159}, size_t{199}, size_t{200}}) {
        CAPTURE(n);
        Sequence child(cache);
        cache.fork(parent, child, n);
        CHECK(child.tokens().size() == n);
        CHECK(child.n_computed() <= n);
        check(child);
        const std::vector<int32_t> rest(30, 7);
        cache.append(child, rest);
        REQUIRE(compute(cache, child));
        check(child);
        check(parent);
    }
}

TEST_CASE_METHOD(Fixture, "children outlive their parent") {
    Sequence child(cache);
    {
        Sequence parent(cache);
        cache.append(parent, counting(50));
        REQUIRE(compute(cache, parent));
        cache.fork(parent, child, 50);
    }
    check(child);
    CHECK(n_used() > 0);
    cache.release(child);
    CHECK(n_used() == 0);
}

TEST_CASE_METHOD(Fixture, "trimming gives up what is cached and keeps what is used") {
    Sequence kept(cache);
    {
        Sequence gone(cache);
        cache.append(gone, counting(100));
        REQUIRE(compute(cache, gone));
        cache.append(kept, counting(40));
        cache.adopt_prefix(kept);
        REQUIRE(compute(cache, kept));
    }
    CHECK(cache.stats().n_cached_blocks > 0);
    cache.trim();
    CHECK(cache.stats().n_cached_blocks == 0);
    CHECK(cache.stats().n_free_blocks == 60 - n_used());
    check(kept);
    Sequence later(cache);
    cache.append(later, counting(150));
    REQUIRE(compute(cache, later));
    check(later);
}
