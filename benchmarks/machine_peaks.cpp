#include "benchmarks/machine_peaks.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/pages.h"

#ifdef __x86_64__
#include <immintrin.h>
#elif defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>
#endif

namespace inlay::benchmarks {
namespace {

constexpr size_t kPrefetch = 4096;  // ahead: hides the step from page to page
constexpr size_t kLine = 64;
constexpr size_t kPasses = 20;

volatile char kept;  // so that nothing measured can be left out

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

// Seconds of each pass in which all threads, each its part, read the data; ascending.
std::vector<double> passes(const std::byte* data, size_t n_threads, size_t n_part) {
    std::atomic<uint64_t> total = 0;
    std::atomic<size_t> n_arrived = 0;
    const auto meet = [&](size_t n_meetings) {
        ++n_arrived;
        while (n_arrived < n_meetings * n_threads) std::this_thread::yield();
    };
    std::vector<double> seconds;
    const auto read = [&](size_t thread) {
        for (size_t pass = 0; pass < kPasses; ++pass) {
            meet(2 * pass + 1);
            const auto start = std::chrono::steady_clock::now();
            total += sum(data + thread * n_part, n_part);
            meet(2 * pass + 2);
            const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
            if (thread == 0) seconds.push_back(elapsed.count());
        }
    };
    std::vector<std::thread> others;
    for (size_t thread = 1; thread < n_threads; ++thread) others.emplace_back(read, thread);
    read(0);
    for (std::thread& thread : others) thread.join();
    std::sort(seconds.begin(), seconds.end());
    return seconds;
}

// Twelve chains hide an instruction's latency, and fit the registers.
constexpr size_t kChains = 12;
constexpr size_t kLinks = size_t{1} << 24;

// Operations a second of `step(sum, a, b)`, each of which does n_operations.
template <typename Sum, typename Operand, typename Step>
double peak(Sum zero, Operand operand, size_t n_operations, const Step& step) {
    double best = 0;
    for (size_t pass = 0; pass < kPasses; ++pass) {
        Sum sums[kChains];
        for (Sum& sum : sums) sum = zero;
        const auto start = std::chrono::steady_clock::now();
        for (size_t link = 0; link < kLinks / kPasses; ++link) {
#pragma GCC unroll 12
            for (size_t i = 0; i < kChains; ++i) sums[i] = step(sums[i], operand, operand);
        }
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
        for (const Sum& sum : sums) kept = reinterpret_cast<const volatile char&>(sum);
        best = std::max(best, static_cast<double>(kLinks / kPasses * kChains * n_operations) / elapsed.count());
    }
    return best;
}

}  // namespace

double int8_peak() {
#if defined(__AVX512VNNI__)
    return peak(_mm512_setzero_si512(), _mm512_set1_epi8(1), 128,
                [](__m512i sum, __m512i a, __m512i b) { return _mm512_dpbusd_epi32(sum, a, b); });
#elif defined(__AVX2__)
    return peak(_mm256_setzero_si256(), _mm256_set1_epi8(1), 64, [](__m256i sum, __m256i a, __m256i b) {
        asm("" : "+x"(a));  // else its product with b is taken only once
        const __m256i pairs = _mm256_maddubs_epi16(a, b);
        return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    });
#elif defined(__ARM_FEATURE_DOTPROD)
    return peak(vdupq_n_s32(0), vdupq_n_s8(1), 32,
                [](int32x4_t sum, int8x16_t a, int8x16_t b) { return vdotq_s32(sum, a, b); });
#else
    return 0;
#endif
}

double f32_peak() {
#if defined(__AVX512F__)
    return peak(_mm512_setzero_ps(), _mm512_set1_ps(1), 32,
                [](__m512 sum, __m512 a, __m512 b) { return _mm512_fmadd_ps(a, b, sum); });
#elif defined(__FMA__)
    return peak(_mm256_setzero_ps(), _mm256_set1_ps(1), 16,
                [](__m256 sum, __m256 a, __m256 b) { return _mm256_fmadd_ps(a, b, sum); });
#elif defined(__ARM_FEATURE_DOTPROD)
    return peak(vdupq_n_f32(0), vdupq_n_f32(1), 8,
                [](float32x4_t sum, float32x4_t a, float32x4_t b) { return vfmaq_f32(sum, a, b); });
#else
    return 0;
#endif
}

ReadBandwidth read_bandwidth(size_t n_threads, size_t n_bytes) {
    const size_t n_part = n_bytes / n_threads / kLine * kLine;
    const size_t n_read = n_part * n_threads;
    PageRange pages(system_pages(), n_read, true);
    pages.commit(0, n_read, true);
    std::fill(pages.data(), pages.data() + n_read, std::byte{1});  // else all of it may be the one page of zeros
    const std::vector<double> seconds = passes(pages.data(), n_threads, n_part);
    const auto bytes = static_cast<double>(n_read);
    return {.median = bytes / seconds[seconds.size() / 2], .best = bytes / seconds.front()};
}

}  // namespace inlay::benchmarks
