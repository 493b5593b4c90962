#include "cache/block_pool.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "cache/eviction_queue.h"

using namespace inlay;

TEST_CASE("a block is free, used or cached") {
    BlockPool pool(system_pages(), 4 * 4096 + 100, 4096, false);
    REQUIRE(pool.n_blocks() == 4);
    const BlockId first = pool.take();
    const BlockId second = pool.take();
    CHECK(pool.page(second) == pool.page(first) + 4096);
    std::memset(pool.page(first), 7, 4096);
    pool.add_reference(first);
    CHECK((pool.n_used() == 2 && pool.n_shared() == 1 && pool.n_free() == 2));
    pool.check_invariants();
    CHECK_FALSE(pool.drop_reference(first));
    CHECK(pool.drop_reference(first));
    CHECK((pool.n_used() == 1 && pool.n_cached() == 1 && pool.n_shared() == 0));
    pool.add_reference(first);  // found again
    CHECK(pool.n_cached() == 0);
    CHECK(pool.page(first)[4095] == std::byte{7});
    CHECK(pool.drop_reference(first));
    pool.free(first);
    CHECK(pool.is_free(first));
    pool.check_invariants();
    CHECK(pool.take() == first);
    CHECK(pool.take() != kNoBlock);
    CHECK(pool.take() != kNoBlock);
    CHECK(pool.take() == kNoBlock);
    pool.check_invariants();
}

TEST_CASE("memory can be taken at once") {
    BlockPool pool(system_pages(), 1 << 20, 64, true);
    CHECK(pool.n_blocks() == 16384);
    CHECK(pool.page(16383)[63] == std::byte{0});
}

TEST_CASE("the eviction queue keeps its order when one leaves the middle") {
    EvictionQueue queue(5);
    CHECK(queue.front() == kNoBlock);
    for (const BlockId block : {3u, 0u, 4u, 1u}) queue.push_back(block);
    queue.remove(4);
    CHECK_FALSE(queue.contains(4));
    CHECK(queue.contains(0));
    CHECK(queue.front() == 3);
    CHECK(queue.next(3) == 0);
    CHECK(queue.next(0) == 1);
    CHECK(queue.next(1) == kNoBlock);
    queue.remove(3);
    queue.push_back(3);
    CHECK(queue.front() == 0);
    CHECK(queue.size() == 3);
}
