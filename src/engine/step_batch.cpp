#include "engine/step_batch.h"

#include <algorithm>
#include <new>

#include "base/float_environment.h"

namespace inlay {

StepBatch::Admission StepBatch::admit(StepRequest& request, uint32_t n_tokens, bool is_stalled) noexcept {
    try {
        reserve_for(request, n_tokens);
        request.need = request.cache->prepare(*request.sequence, n_tokens,
                                              {.promised_end = request.promised_end, .is_stalled = is_stalled});
    } catch (const std::bad_alloc&) {
        request.outcome = StepOutcome::kOutOfMemory;
        return Admission::kRefused;
    }
    if (!request.need && request.need.may_come) return Admission::kWaits;
    if (!request.need) {
        request.outcome = StepOutcome::kCacheFull;
        return Admission::kRefused;
    }
    entries_.push_back({&request, n_tokens});
    n_rows_ += n_tokens;
    return Admission::kAdmitted;
}

// All memory that the step will take, so that nothing in it can fail.
void StepBatch::reserve_for(const StepRequest& request, uint32_t n_tokens) {
    const size_t n_entries = entries_.size() + 1;
    size_t n_group_pages = request.cache->layout().groups.size();
    size_t n_logits = request.n_logits;
    StepSize size{.n_rows = n_rows_ + n_tokens, .n_sequences = n_entries};
    const auto add = [&](const StepRequest& part, uint32_t n_part_tokens) {
        const size_t n_computed = part.sequence->n_computed();
        size.n_positions = std::max(size.n_positions, n_computed + n_part_tokens);
        size.tile_bytes += part.cache->layout().step_tile_bytes(n_computed, n_part_tokens);
    };
    add(request, n_tokens);
    for (const Entry& entry : entries_) {
        n_group_pages += entry.request->cache->layout().groups.size();
        n_logits += entry.request->n_logits;
        add(*entry.request, entry.n_tokens);
    }
    entries_.reserve(n_entries);
    leaving_.reserve(n_entries);
    sequences_.reserve(n_entries);
    group_pages_.reserve(n_group_pages);
    logits_of_.reserve(n_logits);
    logits_.reserve(n_logits);
    tokens_.reserve(size.n_rows);
    kept_rows_.reserve(size.n_rows);
    decoder_.reserve(size);
}

bool StepBatch::brings_next_block(const StepRequest& request) const {
    return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
        return entry.request->cache == request.cache &&
               request.cache->brings_next_block(*entry.request->sequence, entry.n_tokens, *request.sequence);
    });
}

void StepBatch::list_rows() noexcept {
    tokens_.clear();
    sequences_.clear();
    group_pages_.clear();
    logits_of_.clear();
    logits_.clear();
    for (const Entry& entry : entries_) {
        const StepRequest& request = *entry.request;
        const Sequence& sequence = *request.sequence;
        const KvLayout& layout = request.cache->layout();
        const size_t first_position = sequence.n_computed();
        const size_t first_row = tokens_.size();
        const auto tokens = sequence.tokens().subspan(first_position, entry.n_tokens);
        tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());

        std::byte* const* const* pages = group_pages_.data() + group_pages_.size();
        for (size_t group = 0; group < layout.groups.size(); ++group) group_pages_.push_back(sequence.pages(group));
        sequences_.push_back({.first_row = static_cast<uint32_t>(first_row),
                              .n_rows = entry.n_tokens,
                              .first_position = static_cast<uint32_t>(first_position),
                              .layout = &layout,
                              .pages = pages});
        if (!entry.wants_logits()) continue;
        const size_t n_vocabulary = decoder_.spec().n_vocabulary;
        for (size_t i = 0; i < request.n_logits; ++i) {
            logits_of_.push_back(static_cast<uint32_t>(tokens_.size() - request.n_logits + i));
            logits_.push_back(request.logits + i * n_vocabulary);
        }
    }
    n_rows_ = tokens_.size();
}

bool StepBatch::compute_next_layer() noexcept {
    const DefaultFloatEnvironment float_environment;
    if (next_layer_ == 0) {
        list_rows();
        decoder_.begin(rows());
    }
    decoder_.compute_layer(rows(), next_layer_++);
    const bool complete = next_layer_ == decoder_.n_layers();
    if (complete) decoder_.finish(rows());
    return complete;
}

std::span<StepRequest* const> StepBatch::drop_cancelled() noexcept {
    leaving_.clear();
    if (std::none_of(entries_.begin(), entries_.end(),
                     [](const Entry& entry) { return entry.request->is_cancelled(); }))
        return leaving_;
    kept_rows_.clear();
    uint32_t row = 0;
    for (const Entry& entry : entries_) {
        if (entry.request->is_cancelled()) {
            entry.request->outcome = StepOutcome::kCancelled;
            entry.request->cache->abandon_step(*entry.request->sequence);
            leaving_.push_back(entry.request);
        } else {
            for (uint32_t i = 0; i < entry.n_tokens; ++i) kept_rows_.push_back(row + i);
        }
        row += entry.n_tokens;
    }
    std::erase_if(entries_, [](const Entry& entry) { return entry.request->outcome == StepOutcome::kCancelled; });
    list_rows();
    if (entries_.empty())
        next_layer_ = 0;
    else
        decoder_.keep_rows(kept_rows_, rows());
    return leaving_;
}

std::span<StepRequest* const> StepBatch::commit() noexcept {
    leaving_.clear();
    for (const Entry& entry : entries_) {
        StepRequest& request = *entry.request;
        request.cache->commit(*request.sequence, entry.n_tokens);
        request.n_computed = entry.n_tokens;
        request.end = request.sequence->n_computed();
        request.outcome = StepOutcome::kDone;
        leaving_.push_back(&request);
    }
    entries_.clear();
    next_layer_ = 0;
    n_rows_ = 0;
    return leaving_;
}

}  // namespace inlay
