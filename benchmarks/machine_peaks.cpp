#include "benchmarks/machine_peaks.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/pages.h"

namespace inlay::benchmarks {
namespace {

constexpr size_t kBytesPerThread = size_t{512} << 20;  // far beyond any cache
constexpr size_t kPrefetch = 4096;                     // ahead: hides the step from page to page
constexpr size_t kLine = 64;
constexpr int kPasses = 5;

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

// Seconds in which all threads have read their stretch once.
double read_once(const std::byte* data, size_t n_threads) {
    std::atomic<uint64_t> total = 0;
    std::atomic<size_t> n_ready = 0;
    std::atomic<bool> go = false;
    std::vector<std::thread> threads;
    for (size_t i = 0; i < n_threads; ++i)
        threads.emplace_back([&, i] {
            ++n_ready;
            while (!go) std::this_thread::yield();
            total += sum(data + i * kBytesPerThread, kBytesPerThread);
        });
    while (n_ready < n_threads) std::this_thread::yield();
    const auto start = std::chrono::steady_clock::now();
    go = true;
    for (std::thread& thread : threads) thread.join();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

double read_bandwidth(size_t n_threads) {
    const size_t n_bytes = n_threads * kBytesPerThread;
    PageRange pages(system_pages(), n_bytes, true);
    pages.commit(0, n_bytes, true);
    std::fill(pages.data(), pages.data() + n_bytes, std::byte{1});  // else all of it may be the one page of zeros
    double best = read_once(pages.data(), n_threads);
    for (int pass = 1; pass < kPasses; ++pass) best = std::min(best, read_once(pages.data(), n_threads));
    return static_cast<double>(n_bytes) / best;
}

}  // namespace inlay::benchmarks
