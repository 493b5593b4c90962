// Who gets room, what is promised, and who must yield.
#include <catch2/catch.hpp>
#include <memory>

#include "cache/cache.h"
#include "tests/cache/prefix_marks.h"

using namespace inlay;
using namespace inlay::marks;

namespace {

CacheOptions options_for(const KvLayout& layout, size_t n_blocks, WhenFull when_full = WhenFull::kFail) {
    CacheOptions options;
    options.budget_bytes = layout.page_bytes * n_blocks;
    options.when_full = when_full;
    options.max_step_tokens = 32;
    return options;
}

// A cache of one group and sequences that take room in it.
struct Room {
    KvLayout layout;
    Cache cache;
    int32_t next_token = 100000;

    Room(size_t n_blocks, WhenFull when_full, const std::vector<uint32_t>& windows = {0})
        : layout(small_layout(windows)), cache(layout, system_pages(), options_for(layout, n_blocks, when_full)) {}
    ~Room() { cache.check_invariants(); }
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;

    // A sequence of its own tokens, computed.
    std::unique_ptr<Sequence> sequence(size_t n_tokens, int32_t first, bool keeps_blocks = false) {
        auto made = std::make_unique<Sequence>(cache, 0, keeps_blocks);
        cache.append(*made, counting(n_tokens, first));
        REQUIRE(compute(cache, *made));
        return made;
    }

    BlockNeed step(Sequence& sequence, size_t n_tokens, const RoomTerms& terms = {}) {
        cache.append(sequence, counting(n_tokens, next_token));
        next_token += static_cast<int32_t>(n_tokens);
        const BlockNeed need = cache.prepare(sequence, n_tokens, terms);
        if (need) {
            write(layout, sequence, sequence.extra_key(), n_tokens);
            cache.commit(sequence, n_tokens);
        } else {
            cache.truncate(sequence, sequence.tokens().size() - n_tokens);
        }
        cache.check_invariants();
        return need;
    }
};

}  // namespace

TEST_CASE("what is promised to one sequence no other can have") {
    Room room(10, WhenFull::kFail);
    Sequence first(room.cache), second(room.cache);
    const BlockNeed admitted = room.step(first, 16, {.promised_end = 16 + 5 * 16});
    CHECK(admitted.n_needed == 6);
    CHECK(room.cache.has_room(first));
    CHECK(room.cache.stats().n_promised_blocks == 5);

    const BlockNeed refused = room.step(second, 5 * 16);
    CHECK_FALSE(refused);
    CHECK(refused.n_needed == 5);
    CHECK(refused.n_available == 4);
    CHECK_FALSE(refused.may_come);
    REQUIRE(room.step(second, 4 * 16));
    CHECK(room.cache.stats().n_free_blocks == 5);
    for (size_t n = 5; n-- > 0;) {
        REQUIRE(room.step(first, 16, {.promised_end = 6 * 16}));
        CHECK(room.cache.stats().n_promised_blocks == n);
    }
    CHECK_FALSE(room.step(first, 1));
    CHECK(n_wrong(room.layout, first, 0) == 0);
}

TEST_CASE("a promise ends with the turn, a cut, a release and the sequence") {
    Room room(10, WhenFull::kFail);
    auto first = std::make_unique<Sequence>(room.cache);
    const auto promise = [&] { return room.cache.stats().n_promised_blocks; };
    const RoomTerms terms{.promised_end = 8 * 16};
    REQUIRE(room.step(*first, 20, terms));
    CHECK(promise() == 6);
    SECTION("turn") {
        room.cache.end_turn(*first);
        CHECK_FALSE(room.cache.has_room(*first));
    }
    SECTION("cut") {
        room.cache.truncate(*first, 3);
    }
    SECTION("release") {
        room.cache.release(*first);
    }
    SECTION("sequence") {
        first.reset();
    }
    CHECK(promise() == 0);
}

TEST_CASE("cached blocks that were promised are not taken over as a prefix") {
    Room room(10, WhenFull::kFail);
    auto gone = room.sequence(4 * 16, 0);
    gone.reset();
    CHECK(room.cache.stats().n_cached_blocks == 4);
    Sequence first(room.cache), same(room.cache);
    REQUIRE(room.step(first, 16, {.promised_end = 9 * 16}));
    room.cache.append(same, counting(4 * 16 + 1));
    CHECK(room.cache.adopt_prefix(same) == 0);
    CHECK(same.n_computed() == 0);
    CHECK(room.cache.stats().n_prefix_hits == 0);
    room.cache.check_invariants();

    room.cache.end_turn(first);
    CHECK(room.cache.adopt_prefix(same) == 4 * 16);
    room.cache.undo_adoption(same, 4 * 16);
    CHECK(same.n_computed() == 0);
    CHECK(room.cache.stats().n_cached_blocks == 4);
    CHECK(room.cache.stats().n_prefix_hits == 0);
    CHECK(room.cache.stats().n_reused_tokens == 0);
}

TEST_CASE("a promise counts what leaves a window and comes back") {
    // 32 + 32 tokens in at most 6 blocks of the window's group, whatever the length.
    Room room(46, WhenFull::kFail, {0, 32});
    REQUIRE(room.layout.blocks_for(40 * 16, 32) == 46);
    Sequence sequence(room.cache), other(room.cache);
    REQUIRE(room.step(sequence, 16, {.promised_end = 40 * 16}));
    CHECK(room.cache.stats().n_promised_blocks == 44);
    CHECK_FALSE(room.step(other, 1));
    for (size_t n = 1; n < 40; ++n) REQUIRE(room.step(sequence, 16, {.promised_end = 40 * 16}));
    CHECK(n_wrong(room.layout, sequence, 0) == 0);
    CHECK(room.cache.stats().n_promised_blocks == 0);
    CHECK(room.step(other, 1));
}

TEST_CASE("the copy of a partial block that a fork sees is promised too") {
    Room room(6, WhenFull::kFail);
    Sequence parent(room.cache), child(room.cache), other(room.cache);
    REQUIRE(room.step(parent, 20, {.promised_end = 4 * 16}));
    CHECK(room.cache.stats().n_promised_blocks == 2);
    room.cache.fork(parent, child, 20);
    CHECK(room.cache.stats().n_promised_blocks == 3);
    CHECK_FALSE(room.step(other, 17));
    REQUIRE(room.step(other, 16));
    REQUIRE(room.step(parent, 44, {.promised_end = 4 * 16}));
    CHECK(n_wrong(room.layout, parent, 0) == 0);
    CHECK(n_wrong(room.layout, child, 0) == 0);
}

TEST_CASE("what a fork makes its parent need is missing to the parent, not to those who were promised the rest") {
    const std::vector<uint32_t> windows = GENERATE(std::vector<uint32_t>{0}, std::vector<uint32_t>{0, 32});
    const size_t n_groups = windows.size();
    Room room(6 * n_groups, WhenFull::kFail, windows);
    Sequence forked(room.cache), other(room.cache);
    REQUIRE(room.step(forked, 20, {.promised_end = 3 * 16}));
    REQUIRE(room.step(other, 16, {.promised_end = 3 * 16}));
    CHECK(room.cache.stats().n_promised_blocks == 3 * n_groups);
    CHECK(room.cache.stats().n_free_blocks == 3 * n_groups);
    Sequence child(room.cache);
    room.cache.fork(forked, child, 20);
    CHECK(room.cache.stats().n_promised_blocks == 3 * n_groups);
    REQUIRE(room.step(other, 32, {.promised_end = 3 * 16}));
    CHECK_FALSE(room.step(forked, 28));
}

TEST_CASE("sequences without a turn yield first, by how long ago they had one, then the youngest") {
    Room room(12, WhenFull::kPreempt);
    const auto idle_new = room.sequence(32, 1000), idle_old = room.sequence(32, 2000);
    room.cache.end_turn(*idle_new);
    room.cache.end_turn(*idle_old);
    REQUIRE(room.step(*idle_new, 1));
    room.cache.end_turn(*idle_new);
    room.cache.truncate(*idle_new, 32);
    const auto oldest = room.sequence(32, 3000);
    const auto asking = room.sequence(16, 4000);
    const auto youngest = room.sequence(48, 5000);
    const auto n_computed = [&] {
        return std::vector<size_t>{idle_old->n_computed(), idle_new->n_computed(), youngest->n_computed(),
                                   oldest->n_computed(), asking->n_computed()};
    };
    CHECK(n_computed() == std::vector<size_t>{32, 32, 48, 32, 16});
    REQUIRE(room.step(*asking, 48));
    CHECK(n_computed() == std::vector<size_t>{0, 32, 48, 32, 64});
    REQUIRE(room.step(*asking, 32));
    CHECK(n_computed() == std::vector<size_t>{0, 0, 48, 32, 96});
    REQUIRE(room.step(*asking, 48));
    CHECK(n_computed() == std::vector<size_t>{0, 0, 0, 32, 144});
    CHECK(room.cache.stats().n_preemptions == 3);

    const BlockNeed need = room.step(*asking, 32);
    CHECK_FALSE(need);
    CHECK(need.may_come);
    CHECK(oldest->n_computed() == 32);
    CHECK(youngest->tokens().size() == 48);
    CHECK_FALSE(room.step(*asking, 10 * 16).may_come);  // more than there is in all
}

TEST_CASE("who would be the first to yield begins only when the others could go on") {
    Room room(6, WhenFull::kPreempt);
    const auto first = room.sequence(16, 0), second = room.sequence(16, 1000);
    Sequence third(room.cache);
    const BlockNeed refused = room.step(third, 48);
    CHECK_FALSE(refused);
    CHECK(refused.may_come);
    REQUIRE(room.step(third, 32));
    REQUIRE(room.step(*first, 16));
    REQUIRE(room.step(*second, 16));
    CHECK(third.n_computed() == 32);
    REQUIRE(room.step(*first, 16));
    CHECK(third.n_computed() == 0);
}

TEST_CASE("nobody yields in vain, in a step, or as a pin") {
    Room room(8, WhenFull::kPreempt);
    const auto asking = room.sequence(16, 0);
    SECTION("too few blocks even then") {
        const auto pin = room.sequence(32, 1000, true);
        room.cache.end_turn(*pin);
        const auto younger = room.sequence(32, 2000);
        CHECK_FALSE(room.step(*asking, 6 * 16));
        CHECK(younger->n_computed() == 32);
        REQUIRE(room.step(*asking, 5 * 16));
        CHECK(younger->n_computed() == 0);
        CHECK(pin->n_computed() == 32);
    }
    SECTION("in a step") {
        const auto younger = room.sequence(32, 2000);
        room.cache.append(*younger, counting(48, 3000));
        REQUIRE(room.cache.prepare(*younger, 48));
        CHECK_FALSE(room.step(*asking, 48));
        room.cache.abandon_step(*younger);
        CHECK(room.cache.stats().n_free_blocks == 5);
        REQUIRE(room.step(*asking, 7 * 16));
    }
    SECTION("blocks that several share are counted when all yield") {
        const auto parent = room.sequence(32, 2000);
        Sequence child(room.cache), grandchild(room.cache);
        room.cache.fork(*parent, child, 32);
        room.cache.fork(child, grandchild, 32);
        REQUIRE(room.step(child, 16));
        CHECK_FALSE(room.step(*asking, 8 * 16));
        CHECK(parent->n_computed() == 32);
        CHECK(child.n_computed() == 48);
        REQUIRE(room.step(*asking, 7 * 16));
        CHECK(parent->n_computed() == 0);
        CHECK(child.n_computed() == 0);
        CHECK(grandchild.n_computed() == 0);
    }
    SECTION("a promise goes with the blocks") {
        Sequence younger(room.cache);
        REQUIRE(room.step(younger, 16, {.promised_end = 5 * 16}));
        REQUIRE(room.step(*asking, 3 * 16));
        CHECK(younger.n_computed() == 0);
        CHECK(room.cache.stats().n_promised_blocks == 0);
    }
}

TEST_CASE("sequences that wait for each other yield to the oldest once all is stalled") {
    Room room(4, WhenFull::kWait);
    const auto older = room.sequence(32, 0), younger = room.sequence(32, 1000);
    const RoomTerms stalled{.promised_end = 0, .is_stalled = true};
    CHECK(room.step(*older, 16).may_come);
    CHECK_FALSE(room.step(*older, 16, stalled));  // the other does not wait: it may give its blocks back
    CHECK(room.step(*younger, 16).may_come);
    CHECK_FALSE(room.step(*younger, 16, stalled));
    CHECK(younger->n_computed() == 32);
    REQUIRE(room.step(*older, 16, stalled));
    CHECK(younger->n_computed() == 0);
    CHECK(younger->tokens().size() == 32);
}
