// Counts the bytes that `operator new` has out. Linked only into tests that bound the memory of a call: it takes the
// place of src/base/allocation.cpp, so such a test program links the library's objects without that one.
#pragma once

#include <cstddef>

namespace inlay::test {

size_t allocated_bytes();       // now
size_t peak_allocated_bytes();  // the most since the last reset
void reset_peak_allocated_bytes();

}  // namespace inlay::test
