// The memory that the trace of tests/cache holds after each step, as CSV on stdout. Without prefix reuse, so that what
// no sequence uses is free. scripts/draw-cache-memory draws it.
#include "tests/cache/cache_trace.h"

#include <cstdio>

int main() {
    std::puts("step,sequences,contiguous_bytes,paged_bytes,token_bytes");
    size_t n = 0;
    for (const inlay::test::TraceStep& step : inlay::test::CacheTrace(true).run())
        std::printf("%zu,%zu,%zu,%zu,%zu\n", n++, step.n_live, step.contiguous_bytes, step.paged_bytes,
                    step.token_bytes);
}
