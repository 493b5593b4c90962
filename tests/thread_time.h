// Processor time of the calling thread: what else runs on the machine does not count. Tests use it to tell linear from
// quadratic time, which differ a thousandfold, never to measure speed.
#pragma once

#include <ctime>

namespace inlay::test {

inline double thread_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace inlay::test
