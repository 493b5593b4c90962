#include "base/pool_thread.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>

namespace inlay {
namespace {

using namespace std::chrono_literals;

constexpr PoolThread::Clock::duration kFirstPause = 8ms;
constexpr PoolThread::Clock::duration kLongestPause = 512ms;
constexpr PoolThread::Clock::duration kSoon = 100ms;
constexpr PoolThread::Clock::duration kTrial = 16ms;  // who has slept gets more than a slice at first
constexpr PoolThread::Clock::duration kMoves = 20ms;  // the system moves threads to free processors before long
constexpr PoolThread::Clock::duration kInterruption = 20us;
constexpr PoolThread::Clock::duration kMostLost = 2ms;  // the host's own threads, in turns with the pool, take less
constexpr PoolThread::Clock::duration kStall = 300us;   // far shorter than a time slice

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

void PoolThread::note_processor(bool is_callers) noexcept {
    if (!is_callers) {
        on_callers_since_ = {};
        return;
    }
    const Clock::time_point now = Clock::now();
    if (on_callers_since_ == Clock::time_point{}) on_callers_since_ = now;
    if (now - on_callers_since_ > kMoves) mark_stalled();
}

PoolThread::Clock::duration PoolThread::begin_pause() noexcept {
    on_callers_since_ = {};
    stalled_.store(false, std::memory_order_relaxed);
    const Clock::time_point now = Clock::now();
    pause_ = now - pause_end_ < kSoon ? std::min(4 * pause_, kLongestPause) : kFirstPause;
    pause_end_ = now + pause_;
    return pause_;
}

bool ProcessorTrial::goes_on() noexcept {
    const PoolThread::Clock::time_point now = PoolThread::Clock::now();
    if (now - last_ > kInterruption) lost_ += now - last_;
    last_ = now;
    return lost_ <= kMostLost && last_ - begin_ < kTrial;
}

bool ProcessorTrial::has_passed() const noexcept {
    return lost_ <= kMostLost && last_ - begin_ >= kTrial;
}

void StallWatch::look() noexcept {
    if (!watched_) return begin();
    const PoolThread::Clock::duration waited = PoolThread::Clock::now() - since_;
    if (waited < kStall) return;
    const std::chrono::nanoseconds now = watched_->processor_time();
    if (watched_->works_on(list_) && now.count() >= 0 && now - ran_before_ < waited / 2) {
        watched_->mark_stalled();
        has_seen_stall_ = true;
    }
    watched_ = nullptr;
}

void StallWatch::begin() noexcept {
    const auto found = std::ranges::find_if(
        threads_, [this](const PoolThread& thread) { return thread.works_on(list_) && !thread.has_stalled(); });
    if (found == threads_.end()) return;
    watched_ = &*found;
    since_ = PoolThread::Clock::now();
    ran_before_ = watched_->processor_time();
}

}  // namespace inlay
