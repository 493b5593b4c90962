// The compute threads: a task list is worked off by the calling thread and the pool together. The tasks are cut into a
// range for each thread, which it goes through from the front: tasks that follow each other read memory that does. A
// thread whose range is done goes on with the others', so one that wakes late or was preempted delays nothing but its
// own task, and the caller never waits for a thread that took none. Which thread runs a task never decides a result.
//
// Engines may share a pool, so several lists may be there at a time: each lies in a place of its own, and the pool's
// threads take one task from each in turn. No caller waits for another.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/pool_thread.h"

namespace inlay {

class Workers : public std::enable_shared_from_this<Workers> {
public:
    static constexpr size_t kMaxTasks = (size_t{1} << 20) - 1;

    enum class Threads : uint8_t {
        kOwn,  // n_threads - 1 are started
        kLent  // none is started: the host's come by work_until_stopped
    };

    // Throws std::bad_alloc, or Error when the system gives no thread.
    explicit Workers(unsigned n_threads, Threads threads = Threads::kOwn);
    ~Workers();
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    // Most threads that work on one list, its caller included.
    unsigned n_threads() const { return n_threads_; }
    Threads threads() const { return kind_; }

    // Runs task(i, thread) for i in 0..n_tasks - 1 and returns when all are done. `thread` is below n_threads(), of no
    // other thread on this list at the time; 0 is the caller. Tasks must not throw. Any thread, but not a task.
    template <typename Task>
    void run(size_t n_tasks, const Task& task) {
        run_tasks(
            n_tasks, [](const void* self, size_t i, unsigned thread) { (*static_cast<const Task*>(self))(i, thread); },
            &task);
    }

    // Runs work(first, end) over 0..n - 1 in tasks of `grain`.
    template <typename Work>
    void run_ranges(size_t n, size_t grain, const Work& work) {
        run((n + grain - 1) / grain,
            [&](size_t task, unsigned) { work(task * grain, std::min(n, (task + 1) * grain)); });
    }

    // The calling thread is one of the pool's until `stop`; returns at once when that was before. INLAY_E_STATE when
    // n_threads() - 1 are there already.
    void work_until_stopped();
    // For good: the pool's threads leave after their task, and callers do all of their lists. Waits for none.
    void stop() noexcept;

private:
    using Invoke = void (*)(const void* task, size_t i, unsigned thread);

    // Tasks of a list. All that a thread needs to know of them is in one line of its cache.
    struct alignas(64) Range {
        // Number of the list in this place (24 bits), end (20) and first (20) of the tasks that are left: one word, so
        // that taking a task proves that its list is not over.
        std::atomic<uint64_t> left{0};
        std::atomic<uint32_t> n_unfinished{0};  // tasks

        // Written while no task is left to take, read by whoever took one.
        Invoke invoke = nullptr;
        const void* task = nullptr;

        std::atomic<int> callers_processor{-1};
    };
    static constexpr unsigned kMaxRanges = 8;  // more threads share them: all ranges are looked at together

    // The place of a caller's list.
    struct List {
        std::atomic<bool> is_taken{false};  // by a caller
        std::array<Range, kMaxRanges> ranges;
    };
    static constexpr unsigned kMaxLists = 16;  // a caller that finds no place does its list alone

    void start_threads();
    void join_threads();
    void run_tasks(size_t n_tasks, Invoke invoke, const void* task);
    void run_until_helped(size_t n_tasks, Invoke invoke, const void* task);
    List* take_place();
    void publish(List& list, size_t n_tasks, Invoke invoke, const void* task);
    void tell_processor(List& list);
    void wake_sleepers();
    size_t begin_of_range(size_t n_tasks, size_t i) const;
    bool has_tasks(const List& list) const;
    bool take_and_run(List& list, unsigned thread);
    static void run_task(Range& range, size_t i, unsigned thread);
    void wait_until_done(const List& list);
    bool take_from_any(unsigned& first, unsigned thread);
    void leave_processor_to_caller(const List& list, unsigned thread);
    bool is_callers(int processor, const List& list, unsigned thread) const;
    bool any_has_tasks() const;
    bool any_has_tasks_of(unsigned thread) const;
    void work(unsigned thread);
    void stay_away(unsigned thread);
    bool has_processor_to_itself(unsigned thread) const;
    bool keeps_caller_from_processor(unsigned thread) const;
    void pause(PoolThread::Clock::duration duration);
    void wait_for_tasks(unsigned thread);
    unsigned take_number();

    const unsigned n_threads_;
    const unsigned n_ranges_ = std::min(n_threads_, kMaxRanges);  // of a list
    const Threads kind_;
    std::array<List, kMaxLists> lists_;
    alignas(64) std::atomic<unsigned> n_places_{1};  // places that were ever taken: the pool looks at these
    std::atomic<unsigned> n_helpers_{0};             // the pool's threads, less those that pause
    std::atomic<bool> stopping_{false};
    alignas(64) std::atomic<uint32_t> n_sleepers_{0};
    std::atomic<uint32_t> wake_count_{0};
    std::vector<PoolThread> pool_threads_;  // by number; 0 is no one's
    std::mutex pause_mutex_;
    std::condition_variable stopped_;  // ends pauses
    std::vector<std::thread> threads_;
    std::atomic<unsigned> next_number_{1};  // of a lent thread; 0 is the caller's. They stay until the end
};

}  // namespace inlay
