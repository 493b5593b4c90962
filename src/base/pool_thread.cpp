#include "base/pool_thread.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

namespace inlay {
namespace {

using namespace std::chrono_literals;

// One wait for a preempted thread is a few milliseconds: against the longest pause about a hundredth.
constexpr PoolThread::Clock::duration kFirstPause = 8ms;
constexpr PoolThread::Clock::duration kLongestPause = 512ms;
constexpr PoolThread::Clock::duration kSoon = 100ms;
constexpr PoolThread::Clock::duration kStall = 300us;       // far shorter than a time slice
constexpr PoolThread::Clock::duration kLongestSleep = 5ms;  // a pool that is stopped waits no longer

}  // namespace

void PoolThread::arrive() noexcept {
#if defined(_POSIX_THREAD_CPUTIME) && _POSIX_THREAD_CPUTIME >= 0
    clockid_t clock{};
    if (pthread_getcpuclockid(pthread_self(), &clock) != 0) return;
    processor_clock_.store(clock, std::memory_order_relaxed);
    has_clock_.store(true, std::memory_order_release);
#endif
}

std::chrono::nanoseconds PoolThread::processor_time() const noexcept {
    timespec time{};
    if (!has_clock_.load(std::memory_order_acquire) ||
        clock_gettime(processor_clock_.load(std::memory_order_relaxed), &time) != 0)
        return -1ns;
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

void PoolThread::sit_out(const std::atomic<bool>& stopping) noexcept {
    if (!stalled_.load(std::memory_order_relaxed)) return;
    Clock::time_point now = Clock::now();
    pause_ = now - last_pause_end_ < kSoon ? std::min(4 * pause_, kLongestPause) : kFirstPause;
    for (const Clock::time_point end = now + pause_; now < end && !stopping.load(std::memory_order_acquire);
         now = Clock::now())
        std::this_thread::sleep_for(std::min(end - now, kLongestSleep));
    last_pause_end_ = now;
    stalled_.store(false, std::memory_order_relaxed);
}

void StallWatch::look() noexcept {
    if (!watched_) return begin();
    const PoolThread::Clock::duration waited = PoolThread::Clock::now() - since_;
    if (waited < kStall) return;
    const std::chrono::nanoseconds now = watched_->processor_time();
    if (watched_->works_on(list_) && now.count() >= 0 && now - ran_before_ < waited / 2) watched_->mark_stalled();
    watched_ = nullptr;
}

void StallWatch::begin() noexcept {
    const auto found =
        std::ranges::find_if(threads_, [this](const PoolThread& thread) { return thread.works_on(list_); });
    if (found == threads_.end()) return;
    watched_ = &*found;
    since_ = PoolThread::Clock::now();
    ran_before_ = watched_->processor_time();
}

}  // namespace inlay
