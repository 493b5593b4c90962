// Who runs next. Threads ask for a step for their sessions; the first to come leads: it gathers what others ask for,
// computes one step for all and hands each its logits. No thread exists for this, and one thread alone pays nothing.
// Sampling, text and callbacks happen outside, on the thread that asked.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "engine/step_batch.h"
#include "engine/step_request.h"

namespace inlay {

// What one thread asks for, on its stack. Guarded by the scheduler's mutex.
struct StepCall {
    size_t n_open = 0;        // requests waiting or in the step
    bool was_served = false;  // a step with one of its requests is over
    bool leads = false;
    std::condition_variable woken;

    bool is_over() const { return n_open == 0; }
};

class Scheduler {
public:
    Scheduler(Decoder& decoder, uint32_t max_step_tokens) : max_step_tokens_(max_step_tokens), batch_(decoder) {}

    // Returns when one step with at least one of the requests is done, or none of them is left to do. Requests that
    // the step had no room for, or a part of, say so. Each is of another session. Throws std::bad_alloc and has done
    // nothing then.
    void run(std::span<StepRequest> requests);

    // A session that will ask no more.
    void leave(const StepSeat& seat) noexcept;

    uint64_t n_steps() const { return n_steps_.load(std::memory_order_relaxed); }
    // Requests that wait for a step now.
    size_t n_waiting() const;

private:
    using Lock = std::unique_lock<std::mutex>;
    using Clock = std::chrono::steady_clock;

    void enqueue(StepCall& call, std::span<StepRequest> requests);
    void lead(StepCall& call, Lock& lock);
    void pass_leadership() noexcept;

    void gather(Lock& lock);
    size_t n_expected() const noexcept;
    void reuse_prefixes() noexcept;
    void admit_waiting();
    uint32_t share_of(const StepRequest& request, uint32_t n_left, uint32_t n_singles) const noexcept;
    void drop_cancelled() noexcept;
    void finish_step() noexcept;
    void close(StepRequest& request) noexcept;

    const uint32_t max_step_tokens_;
    mutable std::mutex mutex_;
    std::condition_variable arrived_;  // the leader gathers
    std::vector<StepRequest*> queue_;  // waiting, in the order of arrival
    std::vector<StepSeat*> recent_;    // seats that took part in one of the last two steps
    StepBatch batch_;                  // the leader's, without the mutex while a layer is computed
    bool is_led_ = false;              // some thread leads
    bool has_company_ = false;         // threads were seen to ask at the same time
    uint64_t n_arrivals_ = 0;
    std::atomic<uint64_t> n_steps_{0};
    Clock::time_point step_begin_;
    Clock::duration last_step_{};
};

}  // namespace inlay
