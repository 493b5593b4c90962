#include "benchmarks/machine_peaks.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/pages.h"

namespace inlay::benchmarks {
namespace {

constexpr size_t kPrefetch = 4096;  // ahead: hides the step from page to page
constexpr size_t kLine = 64;
constexpr size_t kPasses = 20;

// Sums all words, so that none of the reading can be left out.
uint64_t sum(const std::byte* data, size_t n_bytes) {
    uint64_t lanes[8] = {};
    for (size_t offset = 0; offset < n_bytes; offset += kLine) {
        __builtin_prefetch(data + offset + kPrefetch);
        const auto* words = reinterpret_cast<const uint64_t*>(data + offset);
        for (size_t i = 0; i < 8; ++i) lanes[i] += words[i];
    }
    uint64_t total = 0;
    for (const uint64_t lane : lanes) total += lane;
    return total;
}

// Seconds of the fastest pass in which all threads, each its part, read the data.
double fastest_pass(const std::byte* data, size_t n_threads, size_t n_part) {
    std::atomic<uint64_t> total = 0;
    std::atomic<size_t> n_arrived = 0;
    const auto meet = [&](size_t n_meetings) {
        ++n_arrived;
        while (n_arrived < n_meetings * n_threads) std::this_thread::yield();
    };
    double best = INFINITY;
    const auto read = [&](size_t thread) {
        for (size_t pass = 0; pass < kPasses; ++pass) {
            meet(2 * pass + 1);
            const auto start = std::chrono::steady_clock::now();
            total += sum(data + thread * n_part, n_part);
            meet(2 * pass + 2);
            const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
            if (thread == 0) best = std::min(best, elapsed.count());
        }
    };
    std::vector<std::thread> others;
    for (size_t thread = 1; thread < n_threads; ++thread) others.emplace_back(read, thread);
    read(0);
    for (std::thread& thread : others) thread.join();
    return best;
}

}  // namespace

double read_bandwidth(size_t n_threads, size_t n_bytes) {
    const size_t n_part = n_bytes / n_threads / kLine * kLine;
    const size_t n_read = n_part * n_threads;
    PageRange pages(system_pages(), n_read, true);
    pages.commit(0, n_read, true);
    std::fill(pages.data(), pages.data() + n_read, std::byte{1});  // else all of it may be the one page of zeros
    return static_cast<double>(n_read) / fastest_pass(pages.data(), n_threads, n_part);
}

}  // namespace inlay::benchmarks
