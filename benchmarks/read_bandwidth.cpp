// Bytes a second that threads together read of some megabytes, over and over, median and best, as one JSON object:
// read_bandwidth THREADS MEGABYTES
#include <cstdio>
#include <cstdlib>

#include "benchmarks/machine_peaks.h"

int main(int argc, char** argv) {
    const int n_threads = argc == 3 ? std::atoi(argv[1]) : 0;
    const int n_megabytes = argc == 3 ? std::atoi(argv[2]) : 0;
    if (n_threads < 1 || n_threads > 256 || n_megabytes < 1 || n_megabytes > 65536) {
        std::fputs("usage: read_bandwidth THREADS (1 to 256) MEGABYTES (1 to 65536)\n", stderr);
        return 2;
    }
    const inlay::benchmarks::ReadBandwidth read =
        inlay::benchmarks::read_bandwidth(static_cast<size_t>(n_threads), static_cast<size_t>(n_megabytes) * 1000000);
    std::printf("{\"threads\": %d, \"megabytes\": %d, \"read_bytes_s\": %.0f, \"best_read_bytes_s\": %.0f}\n",
                n_threads, n_megabytes, read.median, read.best);
}
