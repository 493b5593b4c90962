// What a session wants from a step, and what came of it.
#pragma once

#include <atomic>
#include <cstdint>

#include "cache/cache.h"

namespace inlay {

// A session's place in the scheduler; outlives its requests. Guarded by the scheduler's mutex.
struct StepSeat {
    uint64_t last_step = 0;      // the last step that the session took part in; 0: none
    uint64_t waiting_since = 0;  // arrival number of its request, kept while it is passed over
    bool passed_over = false;    // a step had no room for it: the next one serves it first
    bool is_waiting = false;     // in the queue or in the step
};

enum class StepOutcome : uint8_t {
    kNotServed,  // the step or the cache had no room for it: to be asked for again
    kDone,
    kCancelled,
    kCacheFull,
    kOutOfMemory
};

struct StepRequest {
    Cache* cache = nullptr;
    Sequence* sequence = nullptr;
    StepSeat* seat = nullptr;
    const std::atomic<bool>* cancelled = nullptr;
    bool in_one_step = false;    // all uncomputed tokens; otherwise a step may do a part of them
    bool reuses_prefix = false;  // fewer, when the cache holds some of them by then
    uint64_t promised_end = 0;   // the cache is to keep room for all tokens up to here
    uint32_t n_logits = 0;       // of the last rows, wanted once the last token is computed
    float* logits = nullptr;     // [n_logits, n_vocabulary]

    // Written by the scheduler.
    StepOutcome outcome = StepOutcome::kNotServed;
    uint32_t n_tokens = 0;  // uncomputed ones: more than there were when the sequence lost blocks meanwhile
    uint32_t n_computed = 0;
    uint64_t end = 0;  // tokens that are computed now
    uint64_t n_reused = 0;
    BlockNeed need;                   // with kCacheFull
    struct StepCall* call = nullptr;  // of the thread that asked

    bool is_cancelled() const { return cancelled->load(std::memory_order_relaxed); }
    void count_tokens() { n_tokens = static_cast<uint32_t>(sequence->tokens().size() - sequence->n_computed()); }
};

}  // namespace inlay
