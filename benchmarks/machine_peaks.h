// What the machine can do, measured: the bounds that kernels and decoding are compared with.
#pragma once

#include <cstddef>

namespace inlay::benchmarks {

// Bytes a second.
struct ReadBandwidth {
    double median;  // of the passes
    double best;
};
// What `n_threads` threads together read of `n_bytes`, over and over, each its part in order, out of large pages. Of a
// model's weights the caches keep a part from token to token; so of these.
ReadBandwidth read_bandwidth(size_t n_threads, size_t n_bytes);

// Operations a second of one thread, a multiplication and an addition being two: dot products of int8 into int32, and
// fused multiply-adds of f32, with nothing to load. 0 where this build knows no instruction for it.
double int8_peak();
double f32_peak();

}  // namespace inlay::benchmarks
