// The rows of one step: parts of several requests, computed together a layer at a time. Used by one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/step_request.h"
#include "model/decoder.h"

namespace inlay {

class StepBatch {
public:
    explicit StepBatch(Decoder& decoder) : decoder_(decoder) {}

    bool empty() const { return entries_.empty(); }
    size_t size() const { return entries_.size(); }
    StepRequest& request(size_t i) const { return *entries_[i].request; }

    enum class Admission : uint8_t {
        kAdmitted,
        kRefused,  // the request's outcome says what is missing
        kWaits     // for room in the cache
    };
    // Adds the next n_tokens of a request: takes blocks for them and room in scratch memory. When there is none, the
    // batch is as before. `is_stalled`: see RoomTerms.
    Admission admit(StepRequest& request, uint32_t n_tokens, bool is_stalled) noexcept;

    // Whether the step computes the block that comes next in the request's sequence too.
    bool brings_next_block(const StepRequest& request) const;

    // One part of the work: embedding with the first layer, a layer, the last layer with the logits. True when that
    // was the last.
    bool compute_next_layer() noexcept;
    // Between two parts: requests that were cancelled leave, and their rows with them. Returns those.
    std::span<StepRequest* const> drop_cancelled() noexcept;
    // After the last part: what was computed belongs to the sequences. Returns the requests and is empty.
    std::span<StepRequest* const> commit() noexcept;

private:
    struct Entry {
        StepRequest* request;
        uint32_t n_tokens;

        bool wants_logits() const { return n_tokens == request->n_tokens && request->n_logits > 0; }
    };

    void reserve_for(const StepRequest& request, uint32_t n_tokens);
    void list_rows() noexcept;
    StepRows rows() const {
        return {.tokens = tokens_, .sequences = sequences_, .logits_of = logits_of_, .logits = logits_};
    }

    Decoder& decoder_;
    std::vector<Entry> entries_;
    std::vector<StepRequest*> leaving_;
    uint32_t next_layer_ = 0;
    size_t n_rows_ = 0;

    // Listed from the entries; memory kept between steps.
    std::vector<int32_t> tokens_;                 // [n_rows]
    std::vector<SequenceRows> sequences_;         // [entries]
    std::vector<std::byte* const*> group_pages_;  // [entries][groups]
    std::vector<uint32_t> logits_of_;             // [n_logits]
    std::vector<float*> logits_;                  // [n_logits]
    std::vector<uint32_t> kept_rows_;
};

}  // namespace inlay
