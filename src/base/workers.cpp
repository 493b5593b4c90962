#include "base/workers.h"

#include <pthread.h>
#include <signal.h>

#include <cfenv>
#include <system_error>

#include "base/error.h"

namespace inlay {
namespace {

constexpr uint64_t kTaskBits = 20;
constexpr uint64_t kTaskMask = (uint64_t{1} << kTaskBits) - 1;

// Long enough to bridge the caller's own work between two products of a step, short enough to be polite.
constexpr int kSpinsBeforeSleep = 4000;
constexpr int kSpinsBeforeYield = 2000;

size_t next_task(uint64_t ticket) {
    return ticket & kTaskMask;
}
size_t tasks_of_run(uint64_t ticket) {
    return (ticket >> kTaskBits) & kTaskMask;
}
bool has_tasks(uint64_t ticket) {
    return next_task(ticket) < tasks_of_run(ticket);
}

void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
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

Workers::Workers(unsigned n_threads) {
    const SignalsBlocked signals_blocked;
    threads_.reserve(n_threads - 1);
    try {
        for (unsigned i = 1; i < n_threads; ++i) threads_.emplace_back([this, i] { thread_main(i); });
    } catch (const std::system_error& error) {
        stop();
        throw Error(INLAY_E_OUT_OF_MEMORY, "the system gave no compute thread: " + std::string(error.what()));
    } catch (...) {
        stop();
        throw;
    }
}

Workers::~Workers() {
    stop();
}

void Workers::stop() {
    stopping_.store(true, std::memory_order_seq_cst);
    wake_count_.fetch_add(1, std::memory_order_seq_cst);
    wake_count_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
}

void Workers::run_tasks(size_t n_tasks, Invoke invoke, const void* task) {
    if (n_tasks == 1 || threads_.empty()) {
        for (size_t i = 0; i < n_tasks; ++i) invoke(task, i, 0);
        return;
    }
    if (n_tasks == 0) return;
    invoke_ = invoke;
    task_ = task;
    n_done_.store(0, std::memory_order_relaxed);
    publish(n_tasks);
    while (take_and_run(0)) {
    }
    for (int spins = 0; n_done_.load(std::memory_order_acquire) != n_tasks; ++spins) {
        if (spins < kSpinsBeforeYield)
            pause();
        else
            std::this_thread::yield();  // a worker was preempted inside its task
    }
}

void Workers::publish(size_t n_tasks) {
    const uint64_t run = (ticket_.load(std::memory_order_relaxed) >> (2 * kTaskBits)) + 1;
    ticket_.store((run << (2 * kTaskBits)) | (uint64_t{n_tasks} << kTaskBits), std::memory_order_seq_cst);
    if (n_sleepers_.load(std::memory_order_seq_cst) == 0) return;
    wake_count_.fetch_add(1, std::memory_order_seq_cst);
    wake_count_.notify_all();
}

bool Workers::take_and_run(unsigned thread) {
    uint64_t ticket = ticket_.load(std::memory_order_acquire);
    while (has_tasks(ticket)) {
        if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel, std::memory_order_acquire))
            continue;
        invoke_(task_, next_task(ticket), thread);
        n_done_.fetch_add(1, std::memory_order_release);
        return true;
    }
    return false;
}

void Workers::thread_main(unsigned thread) {
    std::fesetenv(FE_DFL_ENV);  // a new thread has its maker's, and that is the host's
    while (!stopping_.load(std::memory_order_acquire)) {
        while (take_and_run(thread)) {
        }
        wait_for_tasks();
    }
}

void Workers::wait_for_tasks() {
    for (int spins = 0; spins < kSpinsBeforeSleep; ++spins) {
        if (has_tasks(ticket_.load(std::memory_order_acquire)) || stopping_.load(std::memory_order_acquire)) return;
        pause();
    }
    // Announce the sleep, then look again: a publisher either sees the sleeper or is seen.
    const uint32_t seen = wake_count_.load(std::memory_order_seq_cst);
    n_sleepers_.fetch_add(1, std::memory_order_seq_cst);
    if (!has_tasks(ticket_.load(std::memory_order_seq_cst)) && !stopping_.load(std::memory_order_seq_cst))
        wake_count_.wait(seen, std::memory_order_seq_cst);
    n_sleepers_.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace inlay
