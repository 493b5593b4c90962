// One step of the engine at a time: the rows of the sessions that take part go through the decoder together. Sampling,
// text and callbacks happen outside, on the thread that called for its session.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "cache/cache.h"
#include "model/decoder.h"

namespace inlay {

enum class StepOutcome : uint8_t { kDone, kCancelled };

// What a session wants from a step: its next n_tokens uncomputed tokens, and the logits of the last n_logits of them.
struct StepRequest {
    Cache* cache;
    Sequence* sequence;
    uint32_t n_tokens;
    uint32_t n_logits;
    float* logits;  // [n_logits, n_vocabulary]
    const std::atomic<bool>* cancelled;
};

class Scheduler {
public:
    explicit Scheduler(Decoder& decoder) : decoder_(decoder) {}

    // Takes blocks for the tokens, computes them and commits them. Throws INLAY_E_CACHE_FULL when the cache has no
    // room; the sequence is then as before.
    StepOutcome run(const StepRequest& request);

private:
    StepOutcome forward(const StepRequest& request);

    Decoder& decoder_;
    std::mutex step_mutex_;
    // Of the current step; memory kept between steps.
    std::vector<uint32_t> logits_of_;
    std::vector<std::byte* const*> group_pages_;
};

}  // namespace inlay
