// What the machine can do, measured: the bounds that kernels and decoding are compared with.
#pragma once

#include <cstddef>

namespace inlay::benchmarks {

// Bytes a second that `n_threads` threads together read from memory, each one long stretch in order, out of large
// pages: the best of several passes.
double read_bandwidth(size_t n_threads);

}  // namespace inlay::benchmarks
