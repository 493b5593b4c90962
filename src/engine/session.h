// One token sequence: what was appended and generated, where its keys and values lie, and how its text leaves.
// One thread at a time; cancel, length and stats from any.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine_cache.h"
#include "engine/scheduler.h"
#include "generate/sampler.h"
#include "text/utf8_stream.h"

namespace inlay {

class SaveSink;
class SaveSource;
struct SavedState;

enum class FinishReason : uint8_t { kNone, kStop, kLength, kStopString, kCancelled };

struct GenerationOptions {
    SamplingOptions sampling;
    bool ignore_end = false;
    uint64_t max_new_tokens = 0;  // 0: up to the context
};

struct Chunk {
    FinishReason finish = FinishReason::kNone;
    std::span<const int32_t> tokens;
    std::string_view text;
};

enum class NextOutcome : uint8_t { kChunk, kMore, kEnd };

struct SessionStats {
    uint64_t n_prompt_tokens = 0;
    uint64_t n_reused_tokens = 0;
    uint64_t n_computed_tokens = 0;
    uint64_t n_recomputed_tokens = 0;
    uint64_t n_generated_tokens = 0;
    uint64_t n_steps = 0;
    uint64_t prompt_ns = 0;
    uint64_t generation_ns = 0;
};

// What came of a load.
struct LoadOutcome {
    size_t n_tokens = 0;
    size_t n_computed = 0;
    bool is_shared = false;      // full blocks are found by other sessions
    bool same_numerics = false;  // what is computed from here on fits what was saved, bit for bit
};

struct SessionOptions {
    uint32_t context_tokens = 0;  // 0: the model's
    uint64_t cache_salt = 0;      // only sessions with the same one share what they computed
    uint64_t reserve_tokens = 0;  // of a text, for which the cache keeps room when it begins
};

class Session final {
public:
    Session(std::shared_ptr<const EngineCache> cache, const SessionOptions& options);
    ~Session() { engine().scheduler().leave(seat_); }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    const Engine& engine() const { return cache_->engine(); }

    void append(std::span<const int32_t> tokens);
    void truncate(uint64_t n_tokens);
    void reset();
    // Another session with the first n_tokens tokens, sharing their blocks. With all of them it goes on exactly as this
    // one would: logits, undelivered text and ending are copied too. Computes nothing.
    std::shared_ptr<Session> fork(uint64_t n_tokens);
    // All that another session needs to go on exactly as this one would, but for its logits, which that one computes
    // again: tokens, blocks, generation options, undelivered text and ending.
    void save(SaveSink& sink);
    // Becomes the saved session, if this one is empty. On a failure nothing has changed. `is_trusted`: full blocks are
    // shared with other sessions, where this engine would have computed the same bits.
    LoadOutcome load(SaveSource& source, bool is_trusted);

    // A text that had reached its length goes on.
    void set_generation(const GenerationOptions& options);

    // The chunk's views are valid until the next call that changes the session.
    NextOutcome next(Chunk& chunk);
    // The same in two halves, so that one thread can run the step of several sessions: what the step is to do (false:
    // none is needed), and what comes of it.
    bool begin_next(StepRequest& request);
    NextOutcome end_next(const StepRequest& request, Chunk& chunk);

    // Appends tokens and computes them with those that wait, in one step; false when it was cancelled. The sequence is
    // as before on a failure.
    bool forward(std::span<const int32_t> tokens, size_t logits_from);
    // [n_rows, n_vocabulary] of the last forward or next; empty when there are none.
    std::span<const float> logits() const { return std::span(*logits_).first(n_logit_rows_ * engine().n_vocabulary()); }

    std::span<const int32_t> tokens() const { return sequence_.tokens(); }

    void cancel() const { cancelled_.store(true, std::memory_order_relaxed); }
    uint64_t length() const { return length_.load(std::memory_order_relaxed); }
    SessionStats stats() const;

    // Held for the length of a call on the session.
    class Call {
    public:
        // INLAY_E_BUSY when another thread is inside one.
        explicit Call(Session& session);
        ~Call() { session_.in_call_.store(false, std::memory_order_release); }
        Call(const Call&) = delete;
        Call& operator=(const Call&) = delete;

    private:
        Session& session_;
    };

private:
    // Counters that other threads may read while a call runs.
    struct Counters {
        std::atomic<uint64_t> prompt_tokens{0}, reused_tokens{0}, computed_tokens{0}, recomputed_tokens{0},
            generated_tokens{0}, steps{0}, prompt_ns{0}, generation_ns{0};
    };

    Cache& cache() const { return cache_->cache(); }
    size_t n_pending() const { return sequence_.tokens().size() - sequence_.n_computed(); }
    // Computed once, and then given up for another session or with a window.
    size_t n_lost() const { return highest_computed_ - std::min<uint64_t>(highest_computed_, sequence_.n_computed()); }
    bool has_next_logits() const { return n_logit_rows_ > 0 && logits_end_ == sequence_.tokens().size(); }

    size_t room_in_context() const {
        return options_.context_tokens - std::min<size_t>(sequence_.tokens().size(), options_.context_tokens);
    }
    bool is_full() const { return room_in_context() == 0; }
    bool is_cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

    void check_room(size_t n_tokens) const;
    void check_within(uint64_t n_tokens) const;
    void undo_append(size_t n_tokens);
    StepOutcome compute_in_one_step(std::span<const int32_t> tokens, size_t logits_from);
    bool compute_pending();
    void sequence_changed();
    void start_text();
    uint64_t promised_end() const;
    float* room_for_logits(uint32_t n_rows);
    SavedState saved_state(size_t n_computed) const;
    void ask_for_pending(StepRequest& request, uint32_t n_logits);
    void take_result(const StepRequest& request);
    int32_t choose_token();
    bool ends_text(int32_t token) const;
    NextOutcome report_cancel(Chunk& chunk);
    NextOutcome finish(FinishReason reason, Chunk& chunk);
    NextOutcome deliver(int32_t token, Chunk& chunk);

    std::shared_ptr<const EngineCache> cache_;
    const SessionOptions options_;
    Sequence sequence_;
    StepSeat seat_;

    GenerationOptions generation_;
    Sampler sampler_;
    Utf8Stream text_;
    uint64_t n_new_tokens_ = 0;
    FinishReason finish_ = FinishReason::kNone;

    std::shared_ptr<std::vector<float>> logits_ = std::make_shared<std::vector<float>>();
    bool logits_are_shared_ = false;  // with a fork, or what it was forked from
    size_t n_logit_rows_ = 0;
    size_t logits_end_ = 0;  // the last row predicts the token at this position

    std::string chunk_text_;
    std::string token_bytes_;
    int32_t chunk_token_ = 0;

    std::chrono::steady_clock::time_point asked_at_;
    uint64_t highest_computed_ = 0;  // positions below it were computed before
    bool was_foreign_ = false;       // loaded with blocks of other numerics: so it is while its sequence is private
    std::atomic<uint64_t> length_{0};
    Counters counters_;
    std::atomic<bool> in_call_{false};
    mutable std::atomic<bool> cancelled_{false};
};

}  // namespace inlay
