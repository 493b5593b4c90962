// How much of what the cache holds are tokens, counted at every step of the trace, beside what contiguous reservations
// would hold for the same sequences.
#include "cache_trace.h"

#include <catch2/catch.hpp>

using namespace inlay;
using namespace inlay::test;

namespace {

struct Share {
    double sum = 0;
    double least = 1;
    size_t n = 0;

    void add(size_t part, size_t whole) {
        const double share = static_cast<double>(part) / static_cast<double>(whole);
        sum += share;
        least = std::min(least, share);
        ++n;
    }
    double mean() const { return sum / static_cast<double>(n); }
};

}  // namespace

TEST_CASE("at least 96 % of the bytes held are tokens") {
    const bool no_reuse = GENERATE(false, true);
    Share paged;       // all steps
    Share steady;      // steps with 64 live sequences
    Share contiguous;  // those steps, with reservations
    for (const TraceStep& step : CacheTrace(no_reuse).run()) {
        paged.add(step.token_bytes, step.paged_bytes);
        if (step.n_live < kTraceLive) continue;
        steady.add(step.token_bytes, step.paged_bytes);
        contiguous.add(step.token_bytes, step.contiguous_bytes);
    }
    WARN("paged" << (no_reuse ? ", no reuse" : "") << ": " << 100 * steady.mean() << " % in mean, "
                 << 100 * steady.least << " % at least over " << steady.n << " steps with " << kTraceLive
                 << " sequences; " << 100 * paged.mean() << " % in mean over all " << paged.n << " steps");
    WARN("contiguous: " << 100 * contiguous.mean() << " % in mean, " << 100 * contiguous.least << " % at least");
    CHECK(steady.n > 100);
    CHECK(steady.mean() >= 0.96);
    CHECK(steady.least >= 0.96);
    CHECK(paged.mean() >= 0.96);
}
