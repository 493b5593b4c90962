#include "engine/scheduler.h"

#include <algorithm>
#include <new>
#include <tuple>

namespace inlay {
namespace {

// How long a leader waits for those who took part lately. Without this, two threads that call in turn never meet: each
// comes back just after the other has begun. On a busy machine a thread takes up to a millisecond to wake.
constexpr std::chrono::microseconds kLongestGathering{1000};
constexpr int kGatheringPartOfStep = 10;
constexpr uint64_t kRecentSteps = 2;

// Room comes when another thread releases, truncates or unpins something, or cancels: nobody tells the scheduler.
constexpr std::chrono::milliseconds kRoomPoll{1};
// A call that finds no room for so long returns, so that its thread can do something about it.
constexpr std::chrono::milliseconds kLongestRoomWait{100};
// Sessions that wait for each other's blocks would wait for ever: after this time the younger ones yield theirs. It is
// short when all that took part in the last steps wait, so that none of them is about to give something back.
constexpr std::chrono::milliseconds kStalled{2};
constexpr std::chrono::milliseconds kStalledBesideOthers{20};

// Who was passed over goes first, then who wants one token and delays nobody; each in the order of arrival.
bool goes_before(const StepRequest* a, const StepRequest* b) {
    const auto rank = [](const StepRequest& request) {
        const int kind = request.seat->passed_over ? 0 : request.n_tokens == 1 ? 1 : 2;
        return std::tuple(kind, request.seat->waiting_since);
    };
    return rank(*a) < rank(*b);
}

}  // namespace

void Scheduler::run(std::span<StepRequest> requests) {
    if (requests.empty()) return;
    StepCall call;
    Lock lock(mutex_);
    enqueue(call, requests);
    if (is_led_) {
        has_company_ = true;
        arrived_.notify_one();
        call.woken.wait(lock, [&] { return call.is_over() || call.leads; });
    } else {
        is_led_ = true;
        call.leads = true;
    }
    if (call.leads) lead(call, lock);
}

void Scheduler::enqueue(StepCall& call, std::span<StepRequest> requests) {
    queue_.reserve(queue_.size() + requests.size());
    recent_.reserve(recent_.size() + batch_.size() + queue_.size() + requests.size());
    full_caches_.reserve(queue_.size() + requests.size());
    for (StepRequest& request : requests) {
        ++n_arrivals_;
        if (!request.seat->passed_over) request.seat->waiting_since = n_arrivals_;
        request.seat->is_waiting = true;
        request.call = &call;
        queue_.push_back(&request);
    }
    call.n_open = requests.size();
}

// Leads until the own call is over: its step is done, or it was cancelled and leaves a step that others are in.
void Scheduler::lead(StepCall& call, Lock& lock) {
    while (!call.is_over()) {
        if (batch_.empty()) {
            gather(lock);
            drop_cancelled();
            admit_waiting();
            if (batch_.empty()) {
                if (!call.is_over()) wait_for_room(lock);
                continue;
            }
            stalled_since_.reset();
            step_begin_ = Clock::now();
        }
        lock.unlock();
        const bool complete = batch_.compute_next_layer();
        lock.lock();
        if (complete)
            finish_step();
        else
            drop_cancelled();
    }
    pass_leadership();
}

void Scheduler::wait_for_room(Lock& lock) {
    if (!stalled_since_) stalled_since_ = Clock::now();
    arrived_.wait_for(lock, kRoomPoll);
}

void Scheduler::pass_leadership() noexcept {
    StepCall* next = nullptr;
    if (!batch_.empty())
        next = batch_.request(0).call;
    else if (!queue_.empty())
        next = queue_.front()->call;
    is_led_ = next != nullptr;
    if (!next) {
        stalled_since_.reset();
        return;
    }
    next->leads = true;
    next->woken.notify_one();
}

void Scheduler::gather(Lock& lock) {
    if (!has_company_ || n_expected() == 0) return;
    const uint64_t n_arrivals_before = n_arrivals_;
    const Clock::time_point deadline =
        Clock::now() + std::min<Clock::duration>(kLongestGathering, last_step_ / kGatheringPartOfStep);
    while (n_expected() != 0 && arrived_.wait_until(lock, deadline) != std::cv_status::timeout) {
    }
    has_company_ = n_arrivals_ != n_arrivals_before;
}

size_t Scheduler::n_expected() const noexcept {
    return static_cast<size_t>(
        std::count_if(recent_.begin(), recent_.end(), [](const StepSeat* seat) { return !seat->is_waiting; }));
}

void Scheduler::admit_waiting() noexcept {
    for (StepRequest* request : queue_) request->count_tokens();
    std::sort(queue_.begin(), queue_.end(), goes_before);
    full_caches_.clear();
    uint32_t n_left = max_step_tokens_;
    auto n_singles = static_cast<uint32_t>(
        std::count_if(queue_.begin(), queue_.end(), [](const StepRequest* request) { return request->n_tokens == 1; }));
    std::erase_if(queue_, [&](StepRequest* request) {
        n_singles -= request->n_tokens == 1;
        return !stays_waiting(*request, n_left, n_singles);
    });
}

// Admits the request or closes it, unless it is to stay in the queue.
bool Scheduler::stays_waiting(StepRequest& request, uint32_t& n_left, uint32_t n_singles) noexcept {
    const auto stays = [&] {
        request.seat->passed_over = true;
        return true;
    };
    request.count_tokens();  // another one may just have taken its blocks
    if (request.in_one_step && request.n_tokens > max_step_tokens_) {
        close(request);
        return false;
    }
    if (n_left == 0) return stays();
    if (is_behind_in_line(request)) return waits_for_room(request);

    const size_t n_reused = reuse_prefix(request);
    // Computed once for all who want it: the others wait for the block instead of computing it too.
    if (request.reuses_prefix && request.n_tokens > 1 && batch_.brings_next_block(request)) return true;
    const uint32_t n_tokens = share_of(request, n_left, n_singles);
    if (n_tokens == 0) return stays();

    const StepBatch::Admission admission = batch_.admit(request, n_tokens, is_stalled());
    if (admission == StepBatch::Admission::kAdmitted) {
        n_left -= n_tokens;
        return false;
    }
    request.cache->undo_adoption(*request.sequence, n_reused);
    request.n_reused -= n_reused;
    if (admission == StepBatch::Admission::kWaits) {
        full_caches_.push_back(request.cache);
        return waits_for_room(request);
    }
    close(request);
    return false;
}

// What others have computed since the request was made.
size_t Scheduler::reuse_prefix(StepRequest& request) noexcept {
    if (!request.reuses_prefix || request.n_tokens <= 1) return 0;
    try {
        const size_t n_reused = request.cache->adopt_prefix(*request.sequence);
        request.n_reused += n_reused;
        request.n_tokens -= static_cast<uint32_t>(n_reused);
        return n_reused;
    } catch (const std::bad_alloc&) {
        return 0;  // it is computed instead
    }
}

// First come, first served: who has no room yet does not overtake one who waits for it. Who has room goes on.
bool Scheduler::is_behind_in_line(const StepRequest& request) const noexcept {
    return std::find(full_caches_.begin(), full_caches_.end(), request.cache) != full_caches_.end() &&
           !request.cache->has_room(*request.sequence);
}

// False: for too long, the call returns and may ask again at the same place of the line.
bool Scheduler::waits_for_room(StepRequest& request) noexcept {
    request.seat->passed_over = true;
    if (Clock::now() - request.call->since < kLongestRoomWait) return true;
    close(request);
    return false;
}

bool Scheduler::is_stalled() const noexcept {
    if (!stalled_since_) return false;
    return Clock::now() - *stalled_since_ > (n_expected() == 0 ? kStalled : kStalledBesideOthers);
}

// Tokens of a request in a step with room for n_left: a prompt leaves room for those behind it who want one token.
uint32_t Scheduler::share_of(const StepRequest& request, uint32_t n_left, uint32_t n_singles) const noexcept {
    const uint32_t beside_singles = n_left > n_singles ? n_left - n_singles : std::min(n_left, 1u);
    if (!request.in_one_step) return std::min(request.n_tokens, beside_singles);
    const uint32_t room = request.seat->passed_over ? n_left : beside_singles;
    return request.n_tokens <= room ? request.n_tokens : 0;
}

void Scheduler::drop_cancelled() noexcept {
    for (StepRequest* request : batch_.drop_cancelled()) close(*request);
    std::erase_if(queue_, [&](StepRequest* request) {
        if (!request->is_cancelled()) return false;
        request->outcome = StepOutcome::kCancelled;
        close(*request);
        return true;
    });
}

void Scheduler::finish_step() noexcept {
    last_step_ = Clock::now() - step_begin_;
    const uint64_t step = n_steps_.load(std::memory_order_relaxed) + 1;
    n_steps_.store(step, std::memory_order_relaxed);
    for (StepRequest* request : batch_.commit()) {
        StepSeat& seat = *request->seat;
        if (std::find(recent_.begin(), recent_.end(), &seat) == recent_.end()) recent_.push_back(&seat);
        seat.last_step = step;
        request->call->was_served = true;
        close(*request);
    }
    std::erase_if(recent_, [&](const StepSeat* seat) { return seat->last_step + kRecentSteps <= step; });
    // A thread that was served asks again itself, for its other sessions too.
    std::erase_if(queue_, [&](StepRequest* request) {
        if (!request->call->was_served) return false;
        close(*request);
        return true;
    });
}

void Scheduler::close(StepRequest& request) noexcept {
    request.seat->is_waiting = false;
    if (request.outcome != StepOutcome::kNotServed) request.seat->passed_over = false;
    if (--request.call->n_open == 0) request.call->woken.notify_one();
}

BlockNeed Scheduler::restore(Cache& cache, Sequence& sequence, std::span<const int32_t> tokens,
                             const RestoredPages& pages, bool may_share) {
    const std::lock_guard lock(mutex_);
    return cache.restore(sequence, tokens, pages, may_share);
}

size_t Scheduler::n_waiting() const {
    const std::lock_guard lock(mutex_);
    return queue_.size();
}

void Scheduler::leave(const StepSeat& seat) noexcept {
    const std::lock_guard lock(mutex_);
    std::erase(recent_, &seat);
}

}  // namespace inlay
