// The compute threads: a task list is worked off by the calling thread and the pool together. Threads take task numbers
// from one counter, so a thread that wakes late or was preempted delays nothing but its own task, and the caller never
// waits for a thread that took none. Which thread runs a task never decides a result.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace inlay {

class Workers {
public:
    static constexpr size_t kMaxTasks = (size_t{1} << 20) - 1;

    // n_threads - 1 threads are started; throws std::bad_alloc or Error when the system gives none.
    explicit Workers(unsigned n_threads);
    ~Workers();
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    unsigned n_threads() const { return static_cast<unsigned>(threads_.size()) + 1; }

    // Runs task(i, thread) for i in 0..n_tasks - 1 and returns when all are done. `thread` is below n_threads(); 0 is
    // the caller. Tasks must not throw. One caller at a time.
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

private:
    using Invoke = void (*)(const void* task, size_t i, unsigned thread);

    void run_tasks(size_t n_tasks, Invoke invoke, const void* task);
    bool take_and_run(unsigned thread);
    void thread_main(unsigned thread);
    void wait_for_tasks();
    void publish(size_t n_tasks);
    void stop();

    // The task list of the current run. Written while no task is left to take, read by whoever took one.
    Invoke invoke_ = nullptr;
    const void* task_ = nullptr;

    // Run number (24 bits), tasks of the run (20), next task to take (20): one word, so that taking a task proves
    // that the run it belongs to is not over.
    alignas(64) std::atomic<uint64_t> ticket_{0};
    alignas(64) std::atomic<uint32_t> n_done_{0};
    alignas(64) std::atomic<uint32_t> n_sleepers_{0};
    std::atomic<uint32_t> wake_count_{0};
    std::atomic<bool> stopping_{false};
    std::vector<std::thread> threads_;
};

}  // namespace inlay
