// The object seam: every `operator new` of the library ends in allocation.cpp, on a private mimalloc (or malloc where
// the build has none). The operators are hidden, so a host keeps its own, and its malloc, untouched. In test builds an
// allocation can be made to fail; the page seam (pages.cpp) asks here too, so that one count covers every byte the
// library takes.
#pragma once

#include <cstdint>

namespace inlay {

// True when the allocation that is about to happen was chosen to fail. Counts one allocation. Always false outside
// test builds.
bool allocation_should_fail() noexcept;

}  // namespace inlay

// Test builds only: makes the n-th allocation from now fail, once (0: the next one); n < 0 turns that off.
// Returns how many allocations were left before the failure chosen earlier; negative if it has happened or none was
// chosen.
extern "C" int64_t inlayx_fail_allocation(int64_t n) noexcept;
