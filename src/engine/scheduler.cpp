#include "engine/scheduler.h"

#include <string>

#include "base/error.h"
#include "base/float_environment.h"

namespace inlay {
namespace {

class SessionWatch final : public StepWatch {
public:
    explicit SessionWatch(const std::atomic<bool>& cancelled) : cancelled_(cancelled) {}
    bool wanted() const override { return !cancelled_.load(std::memory_order_relaxed); }

private:
    const std::atomic<bool>& cancelled_;
};

}  // namespace

StepOutcome Scheduler::run(const StepRequest& request) {
    const std::lock_guard lock(step_mutex_);
    const BlockNeed need = request.cache->prepare(*request.sequence, request.n_tokens);
    if (!need)
        throw Error(INLAY_E_CACHE_FULL, "the step needs " + std::to_string(need.n_needed) +
                                            " more blocks of the cache and " + std::to_string(need.n_available) +
                                            " are free or can be freed");
    const StepOutcome outcome = forward(request);
    if (outcome == StepOutcome::kDone) request.cache->commit(*request.sequence, request.n_tokens);
    return outcome;
}

StepOutcome Scheduler::forward(const StepRequest& request) {
    const Sequence& sequence = *request.sequence;
    const KvLayout& layout = request.cache->layout();
    const uint32_t first = static_cast<uint32_t>(sequence.n_computed());
    decoder_.reserve(request.n_tokens, first + request.n_tokens);

    group_pages_.clear();
    for (uint32_t group = 0; group < layout.groups.size(); ++group) group_pages_.push_back(sequence.pages(group));
    logits_of_.clear();
    for (uint32_t row = request.n_tokens - request.n_logits; row < request.n_tokens; ++row) logits_of_.push_back(row);

    const SequenceRows rows{.first_row = 0,
                            .n_rows = request.n_tokens,
                            .first_position = first,
                            .layout = &layout,
                            .pages = group_pages_.data()};
    const DefaultFloatEnvironment float_environment;
    const bool computed = decoder_.forward({.tokens = sequence.tokens().subspan(first, request.n_tokens),
                                            .sequences = {&rows, 1},
                                            .logits_of = logits_of_,
                                            .logits = request.logits},
                                           SessionWatch(*request.cancelled));
    return computed ? StepOutcome::kDone : StepOutcome::kCancelled;
}

}  // namespace inlay
