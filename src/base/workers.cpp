#include "base/workers.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <cfenv>
#include <string>
#include <system_error>

#include "base/error.h"
#include "base/float_environment.h"

namespace inlay {
namespace {

constexpr uint64_t kTaskBits = 20;
constexpr uint64_t kTaskMask = (uint64_t{1} << kTaskBits) - 1;

// Long enough to bridge the caller's own work between two products of a step, short enough to be polite.
constexpr int kSpinsBeforeSleep = 4000;
constexpr int kSpinsBeforeYield = 2000;
constexpr int kSpinsBetweenLooks = 64;  // at what others have to do

// A caller that waits for a thread which stands still sleeps, so that the system may run it on the caller's processor:
// a millisecond instead of a whole time slice.
constexpr std::chrono::microseconds kLetRun{50};

uint64_t tasks_left(uint64_t list_number, uint64_t first, uint64_t end) {
    return list_number << (2 * kTaskBits) | end << kTaskBits | first;
}
uint64_t list_number(uint64_t left) {
    return left >> (2 * kTaskBits);
}
size_t first_task(uint64_t left) {
    return left & kTaskMask;
}
size_t end_task(uint64_t left) {
    return (left >> kTaskBits) & kTaskMask;
}
bool is_empty(uint64_t left) {
    return first_task(left) == end_task(left);
}

void spin_briefly() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// Below 0 where the system does not say.
int current_processor() {
#if defined(__linux__)
    return sched_getcpu();
#else
    return -1;
#endif
}

// The host's signals are for the host's threads; those of a fault stay with the thread that made it.
class SignalsBlocked {
public:
    SignalsBlocked() {
        sigset_t blocked;
        sigfillset(&blocked);
        for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&blocked, fault);
        pthread_sigmask(SIG_SETMASK, &blocked, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

private:
    sigset_t before_;
};

}  // namespace

Workers::Workers(unsigned n_threads, Threads threads)
    : n_threads_(n_threads), kind_(threads), pool_threads_(n_threads) {
    if (kind_ == Threads::kOwn) start_threads();
}

Workers::~Workers() {
    stop();
    join_threads();
}

void Workers::start_threads() {
    const SignalsBlocked signals_blocked;
    threads_.reserve(n_threads_ - 1);
    try {
        for (unsigned i = 1; i < n_threads_; ++i) {
            threads_.emplace_back([this, i] {
                std::fesetenv(FE_DFL_ENV);  // a new thread has its maker's, and that is the host's
                work(i);
            });
            n_helpers_.fetch_add(1, std::memory_order_relaxed);
        }
    } catch (const std::system_error& error) {
        stop();
        join_threads();
        throw Error(INLAY_E_OUT_OF_MEMORY, "compute thread " + std::to_string(threads_.size() + 1) + " of " +
                                               std::to_string(n_threads_ - 1) +
                                               " could not be started: " + error.code().message());
    } catch (...) {
        stop();
        join_threads();
        throw;
    }
}

void Workers::join_threads() {
    for (std::thread& thread : threads_) thread.join();
}

void Workers::stop() noexcept {
    {
        const std::lock_guard lock(pause_mutex_);
        stopping_.store(true, std::memory_order_seq_cst);
    }
    stopped_.notify_all();
    wake_sleepers();
}

// --- callers ---------------------------------------------------------------------------------------------------------

void Workers::run_tasks(size_t n_tasks, Invoke invoke, const void* task) {
    if (n_helpers_.load(std::memory_order_relaxed) == 0) return run_until_helped(n_tasks, invoke, task);
    List* const list = n_tasks > 1 ? take_place() : nullptr;
    if (!list) {
        for (size_t i = 0; i < n_tasks; ++i) invoke(task, i, 0);
        return;
    }
    publish(*list, n_tasks, invoke, task);
    const bool any_slept = n_sleepers_.load(std::memory_order_relaxed) != 0;
    if (any_slept) wake_sleepers();
    run_task(list->ranges[0], 0, 0);
    // Who went to sleep meanwhile is seen by this, or comes after it and sees the list.
    if (n_sleepers_.fetch_add(0, std::memory_order_acq_rel) != 0 && !any_slept) wake_sleepers();
    while (take_and_run(*list, 0)) tell_processor(*list);
    wait_until_done(*list);
    list->is_taken.store(false, std::memory_order_release);
}

// A long list that begins while all of the pool's threads pause is shared with those that come back.
void Workers::run_until_helped(size_t n_tasks, Invoke invoke, const void* task) {
    for (size_t i = 0; i < n_tasks; ++i) {
        if (n_tasks - i > 1 && n_helpers_.load(std::memory_order_relaxed) > 0)
            return run(n_tasks - i, [=](size_t k, unsigned thread) { invoke(task, i + k, thread); });
        invoke(task, i, 0);
    }
}

void Workers::wait_until_done(const List& list) {
    const auto is_done = [&] {
        for (unsigned i = 0; i < n_ranges_; ++i)
            if (list.ranges[i].n_unfinished.load(std::memory_order_acquire) != 0) return false;
        return true;
    };
    for (int spins = 0; spins < kSpinsBeforeYield; ++spins) {
        if (is_done()) return;
        spin_briefly();
    }
    // A task is long, or its thread was preempted inside it.
    StallWatch watch(pool_threads_, &list);
    for (; !is_done(); watch.look()) {
        if (watch.has_seen_stall())
            std::this_thread::sleep_for(kLetRun);
        else
            std::this_thread::yield();
    }
}

// The first free place, so that the pool has few to look at. Null: none is free.
Workers::List* Workers::take_place() {
    for (unsigned i = 0; i < kMaxLists; ++i) {
        if (lists_[i].is_taken.load(std::memory_order_relaxed) ||
            lists_[i].is_taken.exchange(true, std::memory_order_acquire))
            continue;
        unsigned n_places = n_places_.load(std::memory_order_relaxed);
        while (n_places <= i && !n_places_.compare_exchange_weak(n_places, i + 1, std::memory_order_seq_cst)) {
        }
        return &lists_[i];
    }
    return nullptr;
}

// All but task 0, which is the caller's: it begins while the other processors are still being told.
void Workers::publish(List& list, size_t n_tasks, Invoke invoke, const void* task) {
    tell_processor(list);
    for (unsigned i = n_ranges_; i-- > 0;) {
        Range& range = list.ranges[i];
        const size_t first = begin_of_range(n_tasks, i);
        const size_t end = begin_of_range(n_tasks, i + 1);
        const uint64_t number = list_number(range.left.load(std::memory_order_relaxed)) + 1;
        range.n_unfinished.store(static_cast<uint32_t>(end - first), std::memory_order_relaxed);
        range.invoke = invoke;
        range.task = task;
        range.left.store(tasks_left(number, std::max(size_t{1}, first), end), std::memory_order_release);
    }
}

// By the list's caller, whom the system may move.
void Workers::tell_processor(List& list) {
    const int processor = current_processor();
    if (list.ranges[0].callers_processor.load(std::memory_order_relaxed) == processor) return;
    for (unsigned i = 0; i < n_ranges_; ++i)
        list.ranges[i].callers_processor.store(processor, std::memory_order_relaxed);
}

void Workers::wake_sleepers() {
    wake_count_.fetch_add(1, std::memory_order_seq_cst);
    wake_count_.notify_all();
}

// Where range i begins; the first one is never empty.
size_t Workers::begin_of_range(size_t n_tasks, size_t i) const {
    return (n_tasks * i + n_ranges_ - 1) / n_ranges_;
}

bool Workers::has_tasks(const List& list) const {
    for (unsigned i = 0; i < n_ranges_; ++i)
        if (!is_empty(list.ranges[i].left.load(std::memory_order_seq_cst))) return true;
    return false;
}

void Workers::run_task(Range& range, size_t i, unsigned thread) {
    range.invoke(range.task, i, thread);
    range.n_unfinished.fetch_sub(1, std::memory_order_release);
}

// The next task of the thread's own range, or of another's; false: all are taken.
bool Workers::take_and_run(List& list, unsigned thread) {
    for (unsigned i = 0; i < n_ranges_; ++i) {
        Range& range = list.ranges[(thread + i) % n_ranges_];
        uint64_t left = range.left.load(std::memory_order_acquire);
        while (!is_empty(left)) {
            if (!range.left.compare_exchange_weak(left, left + 1, std::memory_order_acq_rel, std::memory_order_acquire))
                continue;
            run_task(range, first_task(left), thread);
            return true;
        }
    }
    return false;
}

// --- the pool's threads ----------------------------------------------------------------------------------------------

// One task of the first list, counted from place `first`, that has one; `first` is then the place after it.
bool Workers::take_from_any(unsigned& first, unsigned thread) {
    const unsigned n_places = n_places_.load(std::memory_order_seq_cst);
    for (unsigned i = 0; i < n_places; ++i) {
        const unsigned place = (first + i) % n_places;
        pool_threads_[thread].begin(&lists_[place]);
        const bool has_run = take_and_run(lists_[place], thread);
        pool_threads_[thread].end();
        if (!has_run) continue;
        leave_processor_to_caller(lists_[place], thread);
        first = place + 1;
        return true;
    }
    return false;
}

void Workers::leave_processor_to_caller(const List& list, unsigned thread) {
    const bool is_shared = is_callers(current_processor(), list, thread);
    pool_threads_[thread].note_processor(is_shared);
    if (is_shared) std::this_thread::yield();
}

bool Workers::is_callers(int processor, const List& list, unsigned thread) const {
    return processor >= 0 &&
           list.ranges[thread % n_ranges_].callers_processor.load(std::memory_order_relaxed) == processor;
}

bool Workers::any_has_tasks() const {
    const unsigned n_places = n_places_.load(std::memory_order_seq_cst);
    for (unsigned i = 0; i < n_places; ++i)
        if (has_tasks(lists_[i])) return true;
    return false;
}

// The thread's own ranges alone: looking at a line takes it away from the thread that works with it.
bool Workers::any_has_tasks_of(unsigned thread) const {
    const unsigned n_places = n_places_.load(std::memory_order_relaxed);
    for (unsigned i = 0; i < n_places; ++i)
        if (!is_empty(lists_[i].ranges[thread % n_ranges_].left.load(std::memory_order_relaxed))) return true;
    return false;
}

void Workers::work(unsigned thread) {
    pool_threads_[thread].arrive();
    unsigned first = 0;
    while (!stopping_.load(std::memory_order_acquire)) {
        if (pool_threads_[thread].has_stalled()) stay_away(thread);
        if (!take_from_any(first, thread)) wait_for_tasks(thread);
    }
}

// Until the thread has its processor to itself. It tries that only when there is work: a pool without work sleeps.
void Workers::stay_away(unsigned thread) {
    do {
        pause(pool_threads_[thread].begin_pause());
        wait_for_tasks(thread);
    } while (!stopping_.load(std::memory_order_acquire) && !has_processor_to_itself(thread));
}

bool Workers::has_processor_to_itself(unsigned thread) const {
    ProcessorTrial trial;
    while (!stopping_.load(std::memory_order_relaxed) && trial.goes_on())
        if (keeps_caller_from_processor(thread)) std::this_thread::yield();
    return trial.has_passed();
}

bool Workers::keeps_caller_from_processor(unsigned thread) const {
    const int processor = current_processor();
    const auto first = lists_.begin();
    return std::any_of(first, first + n_places_.load(std::memory_order_relaxed), [&](const List& list) {
        return list.is_taken.load(std::memory_order_relaxed) && is_callers(processor, list, thread);
    });
}

// While all of its threads pause, callers do as if there were no pool.
void Workers::pause(PoolThread::Clock::duration duration) {
    n_helpers_.fetch_sub(1, std::memory_order_relaxed);
    std::unique_lock lock(pause_mutex_);
    stopped_.wait_for(lock, duration, [&] { return stopping_.load(std::memory_order_relaxed); });
    n_helpers_.fetch_add(1, std::memory_order_relaxed);
}

void Workers::wait_for_tasks(unsigned thread) {
    for (int spins = 0; spins < kSpinsBeforeSleep; ++spins) {
        if (any_has_tasks_of(thread) || stopping_.load(std::memory_order_acquire)) return;
        if (spins % kSpinsBetweenLooks == kSpinsBetweenLooks - 1 && any_has_tasks()) return;
        spin_briefly();
    }
    pool_threads_[thread].note_processor(false);  // it may wake on another
    // Announce the sleep, then look again: a publisher either sees the sleeper or is seen.
    const uint32_t seen = wake_count_.load(std::memory_order_seq_cst);
    n_sleepers_.fetch_add(1, std::memory_order_seq_cst);
    if (!any_has_tasks() && !stopping_.load(std::memory_order_seq_cst))
        wake_count_.wait(seen, std::memory_order_seq_cst);
    n_sleepers_.fetch_sub(1, std::memory_order_seq_cst);
}

void Workers::work_until_stopped() {
    const DefaultFloatEnvironment float_environment;
    if (stopping_.load(std::memory_order_acquire)) return;
    const unsigned thread = take_number();
    n_helpers_.fetch_add(1, std::memory_order_relaxed);
    work(thread);
    n_helpers_.fetch_sub(1, std::memory_order_relaxed);
}

unsigned Workers::take_number() {
    unsigned number = next_number_.load(std::memory_order_relaxed);
    do {
        if (number >= n_threads_)
            throw Error(INLAY_E_STATE, "workers has room for n_threads - 1 = " + std::to_string(n_threads_ - 1) +
                                           " lent threads, and as many have come");
    } while (!next_number_.compare_exchange_weak(number, number + 1, std::memory_order_relaxed));
    return number;
}

}  // namespace inlay
