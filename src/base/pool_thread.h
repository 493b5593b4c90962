// A thread of a pool as callers see it: the list it works on, and whether the system lets it run. Where another process
// has its processor, a caller waits milliseconds for a task that stands still. Such a thread takes no tasks for a
// while, longer each time it happens again soon after, so that work on fewer threads is not slowed by those that can
// not run.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <span>

namespace inlay {

class alignas(64) PoolThread {
public:
    using Clock = std::chrono::steady_clock;

    // --- by the thread itself ---
    void arrive() noexcept;
    // Around its tasks.
    void begin(const void* list) noexcept { list_.store(list, std::memory_order_relaxed); }
    void end() noexcept { list_.store(nullptr, std::memory_order_relaxed); }
    // Sleeps, when it stalled; returns early when `stopping`.
    void sit_out(const std::atomic<bool>& stopping) noexcept;

    // --- by a caller that waits for `list` ---
    bool works_on(const void* list) const noexcept { return list_.load(std::memory_order_relaxed) == list; }
    // How long it has run; below 0 where the system does not say.
    std::chrono::nanoseconds processor_time() const noexcept;
    void mark_stalled() noexcept { stalled_.store(true, std::memory_order_relaxed); }

private:
    std::atomic<const void*> list_{nullptr};
    std::atomic<bool> stalled_{false};
    std::atomic<bool> has_clock_{false};
    std::atomic<clockid_t> processor_clock_{};

    // The thread's own.
    Clock::duration pause_{};
    Clock::time_point last_pause_end_{};
};

// What a caller looks at while it waits for a list to be done: a thread that works on it, whether it runs.
class StallWatch {
public:
    StallWatch(std::span<PoolThread> threads, const void* list) : threads_(threads), list_(list) {}

    void look() noexcept;

private:
    void begin() noexcept;

    std::span<PoolThread> threads_;
    const void* list_;
    PoolThread* watched_ = nullptr;
    PoolThread::Clock::time_point since_;
    std::chrono::nanoseconds ran_before_{};
};

}  // namespace inlay
