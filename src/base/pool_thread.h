// A thread of a pool as callers see it: the list it works on, and whether the system lets it run. Where another process
// has its processor, a caller waits milliseconds for a task that stands still; where the system puts the thread on its
// caller's processor instead, the two take turns and are slower than one. Such a thread takes no tasks for a while, and
// none after it before it has tried its processor on nothing that anyone waits for. A pause soon after another is
// longer, up to half a second, so that work on fewer threads is not slowed by those that can not run.
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
    // After each task. One that does not get off its caller's processor has stalled.
    void note_processor(bool is_callers) noexcept;
    bool has_stalled() const noexcept { return stalled_.load(std::memory_order_relaxed); }
    // How long it is to take no tasks from now on, because it stalled or its trial failed.
    Clock::duration begin_pause() noexcept;

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
    Clock::time_point on_callers_since_{};  // {}: it is not
    Clock::duration pause_{};
    Clock::time_point pause_end_{};
};

// Whether the calling thread has its processor to itself: it runs idly for some time slices, and others took little of
// that.
class ProcessorTrial {
public:
    // To be called again and again, until it is false.
    bool goes_on() noexcept;
    bool has_passed() const noexcept;

private:
    PoolThread::Clock::time_point last_ = PoolThread::Clock::now();
    const PoolThread::Clock::time_point begin_ = last_;
    PoolThread::Clock::duration lost_{};
};

// What a caller looks at while it waits for a list to be done: a thread that works on it, whether it runs.
class StallWatch {
public:
    StallWatch(std::span<PoolThread> threads, const void* list) : threads_(threads), list_(list) {}

    void look() noexcept;
    // Whether a thread stood still, so that it is to pause.
    bool has_seen_stall() const noexcept { return has_seen_stall_; }

private:
    void begin() noexcept;

    std::span<PoolThread> threads_;
    const void* list_;
    bool has_seen_stall_ = false;
    PoolThread* watched_ = nullptr;
    PoolThread::Clock::time_point since_;
    std::chrono::nanoseconds ran_before_{};
};

}  // namespace inlay
