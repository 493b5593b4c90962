// Who runs next. Threads ask for a step for their sessions; the first to come leads: it gathers what others ask for,
// computes one step for all and hands each its logits. No thread exists for this, and one thread alone pays nothing.
// Sampling, text and callbacks happen outside, on the thread that asked.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
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

    std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();

    bool is_over() const { return n_open == 0; }
};

class Scheduler {
public:
    Scheduler(Decoder& decoder, uint32_t max_step_tokens) : max_step_tokens_(max_step_tokens), batch_(decoder) {}

    // Returns when one step with at least one of the requests is done, or none of them is left to do. Requests that
    // the step had no room for, or a part of, say so; so do those for which the cache has had none for a while, which
    // keep their place in the line. Each is of another session. Throws std::bad_alloc and has done nothing then.
    void run(std::span<StepRequest> requests);

    // A session that will ask no more.
    void leave(const StepSeat& seat) noexcept;

    uint64_t n_steps() const { return n_steps_.load(std::memory_order_relaxed); }
    // Cache::restore while no step is being put together: it may take the blocks of sessions that wait for one.
    BlockNeed restore(Cache& cache, Sequence& sequence, std::span<const int32_t> tokens, const RestoredPages& pages,
                      bool may_share);

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
    void admit_waiting() noexcept;
    bool stays_waiting(StepRequest& request, uint32_t& n_left, uint32_t n_singles) noexcept;
    size_t reuse_prefix(StepRequest& request) noexcept;
    bool waits_for_room(StepRequest& request) noexcept;
    bool is_stalled() const noexcept;
    bool is_behind_in_line(const StepRequest& request) const noexcept;
    void wait_for_room(Lock& lock);
    uint32_t share_of(const StepRequest& request, uint32_t n_left, uint32_t n_singles) const noexcept;
    void drop_cancelled() noexcept;
    void finish_step() noexcept;
    void close(StepRequest& request) noexcept;

    const uint32_t max_step_tokens_;
    mutable std::mutex mutex_;
    std::condition_variable arrived_;  // the leader gathers
    std::vector<StepRequest*> queue_;  // waiting, in the order of arrival
    std::vector<StepSeat*> recent_;    // seats that took part in one of the last two steps
    std::vector<Cache*> full_caches_;  // that have a request waiting for room
    StepBatch batch_;                  // the leader's, without the mutex while a layer is computed
    bool is_led_ = false;              // some thread leads
    bool has_company_ = false;         // threads were seen to ask at the same time
    uint64_t n_arrivals_ = 0;
    std::atomic<uint64_t> n_steps_{0};
    Clock::time_point step_begin_;
    Clock::duration last_step_{};
    std::optional<Clock::time_point> stalled_since_;  // requests wait for room, and no step can be made of others
};

}  // namespace inlay
