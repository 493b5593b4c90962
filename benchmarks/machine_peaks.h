// What the machine can do, measured: the bounds that kernels and decoding are compared with.
#pragma once

#include <cstddef>

namespace inlay::benchmarks {

// Bytes a second that `n_threads` threads together read of `n_bytes`, over and over, each its part in order, out of
// large pages: the best of many passes. Of a model's weights the caches keep a part from token to token; so of these.
double read_bandwidth(size_t n_threads, size_t n_bytes);

}  // namespace inlay::benchmarks
