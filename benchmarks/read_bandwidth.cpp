// Bytes a second that N threads together read from memory, as one JSON object: read_bandwidth [N]
#include <cstdio>
#include <cstdlib>

#include "benchmarks/machine_peaks.h"

int main(int argc, char** argv) {
    const int n_threads = argc > 1 ? std::atoi(argv[1]) : 1;
    if (n_threads < 1 || n_threads > 256) {
        std::fputs("usage: read_bandwidth [THREADS, 1 to 256]\n", stderr);
        return 2;
    }
    std::printf("{\"threads\": %d, \"read_bytes_s\": %.0f}\n", n_threads,
                inlay::benchmarks::read_bandwidth(static_cast<size_t>(n_threads)));
}
