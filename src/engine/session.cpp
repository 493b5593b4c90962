#include "engine/session.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/float_environment.h"

namespace inlay {
namespace {

SessionOptions with_context(SessionOptions options, const ModelSpec& spec) {
    if (options.context_tokens == 0) options.context_tokens = spec.context_tokens;
    return options;
}

}  // namespace

Session::Call::Call(Session& session) : session_(session) {
    if (session_.in_call_.exchange(true, std::memory_order_acquire))
        throw Error(INLAY_E_BUSY, "the session is inside a call already, of another thread or of this one");
}

Session::Session(std::shared_ptr<const EngineCache> cache, const SessionOptions& options)
    : cache_(std::move(cache)),
      options_(with_context(options, cache_->engine().spec())),
      sequence_(cache_->cache(), options.cache_salt),
      sampler_(engine().kernels()) {}

void Session::check_room(size_t n_tokens) const {
    if (n_tokens > room_in_context())
        throw Error(INLAY_E_CONTEXT_FULL, "the context of " + std::to_string(options_.context_tokens) +
                                              " tokens holds " + std::to_string(sequence_.tokens().size()) +
                                              " and has no room for " + std::to_string(n_tokens) + " more");
}

void Session::check_within(uint64_t n_tokens) const {
    if (n_tokens > sequence_.tokens().size())
        throw Error(INLAY_E_INVALID_ARGUMENT, "n_tokens is " + std::to_string(n_tokens) + " but the session has " +
                                                  std::to_string(sequence_.tokens().size()) + " tokens");
}

void Session::sequence_changed() {
    length_.store(sequence_.tokens().size(), std::memory_order_relaxed);
}

// What the host did begins a new text: the old one's ending, partial character and cancel are over.
void Session::start_text() {
    cancelled_.store(false, std::memory_order_relaxed);
    finish_ = FinishReason::kNone;
    n_new_tokens_ = 0;
    n_logit_rows_ = 0;
    text_ = Utf8Stream();
    cache().end_turn(sequence_);
    sequence_changed();
}

void Session::append(std::span<const int32_t> tokens) {
    check_room(tokens.size());
    cache().append(sequence_, tokens);
    counters_.prompt_tokens += tokens.size();
    start_text();
}

void Session::truncate(uint64_t n_tokens) {
    check_within(n_tokens);
    cache().truncate(sequence_, n_tokens);
    highest_computed_ = std::min(highest_computed_, n_tokens);  // other tokens may follow
    start_text();
}

void Session::reset() {
    truncate(0);
}

void Session::set_generation(const GenerationOptions& options) {
    generation_ = options;
    n_new_tokens_ = 0;
    if (finish_ == FinishReason::kLength) finish_ = FinishReason::kNone;
}

std::shared_ptr<Session> Session::fork(uint64_t n_tokens) {
    check_within(n_tokens);
    auto child = std::make_shared<Session>(cache_, options_);
    cache().fork(sequence_, child->sequence_, n_tokens);
    child->generation_ = generation_;
    child->highest_computed_ = std::min(highest_computed_, n_tokens);
    child->was_foreign_ = was_foreign_;
    child->sequence_changed();
    if (n_tokens < sequence_.tokens().size()) return child;
    child->text_ = text_;
    child->n_new_tokens_ = n_new_tokens_;
    child->finish_ = finish_;
    child->logits_ = logits_;
    child->n_logit_rows_ = n_logit_rows_;
    child->logits_end_ = logits_end_;
    logits_are_shared_ = child->logits_are_shared_ = true;
    return child;
}

float* Session::room_for_logits(uint32_t n_rows) {
    n_logit_rows_ = 0;
    if (logits_are_shared_) {
        logits_ = std::make_shared<std::vector<float>>();
        logits_are_shared_ = false;
    }
    logits_->resize(size_t{n_rows} * engine().n_vocabulary());
    return logits_->data();
}

// Where the text would end that was asked to be given room. The same in all steps of a text.
uint64_t Session::promised_end() const {
    const uint64_t n_left = options_.reserve_tokens - std::min(options_.reserve_tokens, n_new_tokens_);
    return sequence_.tokens().size() + std::min<uint64_t>(n_left, room_in_context());
}

// All that waits, and the logits of its last rows.
void Session::ask_for_pending(StepRequest& request, uint32_t n_logits) {
    request.logits = room_for_logits(n_logits);
    request.cache = &cache();
    request.sequence = &sequence_;
    request.seat = &seat_;
    request.cancelled = &cancelled_;
    request.promised_end = sequence_.tokens().size();
    request.n_logits = n_logits;
    asked_at_ = std::chrono::steady_clock::now();
}

void Session::take_result(const StepRequest& request) {
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - asked_at_);
    (n_new_tokens_ == 0 ? counters_.prompt_ns : counters_.generation_ns) += static_cast<uint64_t>(ns.count());
    counters_.reused_tokens += request.n_reused;
    if (request.outcome == StepOutcome::kOutOfMemory) throw std::bad_alloc();
    if (request.outcome == StepOutcome::kCacheFull) throw cache_full("the session", request.need);
    if (request.outcome != StepOutcome::kDone) return;

    const uint64_t end = request.end;
    const uint64_t first = end - request.n_computed;
    ++counters_.steps;
    counters_.computed_tokens += request.n_computed;
    counters_.recomputed_tokens += std::min(end, std::max(first, highest_computed_)) - first;
    highest_computed_ = std::max(highest_computed_, end);
    if (request.n_computed < request.n_tokens) return;
    n_logit_rows_ = request.n_logits;
    logits_end_ = end;
}

bool Session::begin_next(StepRequest& request) {
    chunk_text_.clear();
    if (finish_ != FinishReason::kNone) return false;
    if (sequence_.tokens().empty()) throw Error(INLAY_E_STATE, "the session is empty: append tokens or text first");
    if (is_cancelled() || is_full() || has_next_logits()) return false;
    if (n_pending() == 0) cache().forget_from(sequence_, sequence_.tokens().size() - 1);
    ask_for_pending(request, 1);
    request.reuses_prefix = true;
    request.promised_end = promised_end();
    return true;
}

NextOutcome Session::end_next(const StepRequest& request, Chunk& chunk) {
    if (request.sequence) take_result(request);
    if (finish_ != FinishReason::kNone) {
        chunk.finish = finish_;
        return NextOutcome::kEnd;
    }
    const bool was_served = request.outcome != StepOutcome::kNotServed;
    if (was_served ? request.outcome == StepOutcome::kCancelled : is_cancelled()) return report_cancel(chunk);
    if (is_full()) return finish(FinishReason::kLength, chunk);
    if (!has_next_logits()) return NextOutcome::kMore;
    const int32_t token = choose_token();
    if (ends_text(token) && !generation_.ignore_end) return finish(FinishReason::kStop, chunk);
    return deliver(token, chunk);
}

NextOutcome Session::next(Chunk& chunk) {
    StepRequest request;
    if (begin_next(request)) engine().scheduler().run({&request, 1});
    return end_next(request, chunk);
}

int32_t Session::choose_token() {
    const DefaultFloatEnvironment float_environment;
    const size_t position = sequence_.tokens().size();
    const int32_t token = sampler_.sample(logits().last(engine().n_vocabulary()), generation_.sampling, position);
    if (token == Sampler::kNoToken)
        throw Error(INLAY_E_FORMAT, "the model gives no token a chance at position " + std::to_string(position) +
                                        ": its logits are no numbers");
    return token;
}

// Ids from the tokenizer's size on are padding of the output: they have no text and end nothing.
bool Session::ends_text(int32_t token) const {
    const Tokenizer& tokenizer = engine().tokenizer();
    return static_cast<size_t>(token) < tokenizer.n_tokens() && tokenizer.is_end_of_generation(token);
}

// Sticky until here: the next call goes on.
NextOutcome Session::report_cancel(Chunk& chunk) {
    cancelled_.store(false, std::memory_order_relaxed);
    cache().end_turn(sequence_);
    chunk.finish = FinishReason::kCancelled;
    return NextOutcome::kEnd;
}

NextOutcome Session::finish(FinishReason reason, Chunk& chunk) {
    finish_ = reason;
    cache().end_turn(sequence_);
    text_.flush(chunk_text_);
    chunk.finish = reason;
    chunk.text = chunk_text_;
    return NextOutcome::kEnd;
}

NextOutcome Session::deliver(int32_t token, Chunk& chunk) {
    token_bytes_.clear();
    if (static_cast<size_t>(token) < engine().tokenizer().n_tokens())
        engine().tokenizer().append_token_bytes(token, false, token_bytes_);
    // What can fail comes first: a byte becomes at most one replacement character of three.
    chunk_text_.reserve(3 * (token_bytes_.size() + 2 * text_.n_waiting() + 1));
    cache().append(sequence_, {&token, 1});
    text_.push(token_bytes_, chunk_text_);
    sequence_changed();
    chunk_token_ = token;
    ++n_new_tokens_;
    ++counters_.generated_tokens;
    chunk.tokens = {&chunk_token_, 1};
    chunk.text = chunk_text_;
    const bool at_limit = n_new_tokens_ == generation_.max_new_tokens || is_full();
    return at_limit ? finish(FinishReason::kLength, chunk) : NextOutcome::kChunk;
}

void Session::undo_append(size_t n_tokens) {
    counters_.prompt_tokens -= sequence_.tokens().size() - n_tokens;
    cache().truncate(sequence_, n_tokens);
    start_text();
}

bool Session::forward(std::span<const int32_t> tokens, size_t logits_from) {
    for (;;) {
        // What others took is not what the host appended: it is computed again as by next, in as many steps as it
        // takes.
        const bool fits = n_pending() + tokens.size() <= engine().max_step_tokens();
        if (!fits && n_lost() > 0) {
            if (!compute_pending()) return false;
            continue;
        }
        if (!fits)
            throw Error(INLAY_E_STATE, std::to_string(n_pending()) + " tokens wait to be computed: with n_tokens of " +
                                           std::to_string(tokens.size()) + " they are more than a step's " +
                                           std::to_string(engine().max_step_tokens()));
        const StepOutcome outcome = compute_in_one_step(tokens, logits_from);
        if (outcome != StepOutcome::kNotServed) return outcome == StepOutcome::kDone;
    }
}

// The sequence is as before unless it was done.
StepOutcome Session::compute_in_one_step(std::span<const int32_t> tokens, size_t logits_from) {
    const size_t before = sequence_.tokens().size();
    const bool cancelled_before = is_cancelled();
    append(tokens);
    cancelled_.store(cancelled_before, std::memory_order_relaxed);
    StepRequest request;
    try {
        ask_for_pending(request, static_cast<uint32_t>(tokens.size() - logits_from));
        request.in_one_step = true;
        engine().scheduler().run({&request, 1});
        take_result(request);
    } catch (...) {
        undo_append(before);
        throw;
    }
    if (request.outcome == StepOutcome::kDone) return request.outcome;
    const bool cancelled_meanwhile = request.outcome == StepOutcome::kNotServed && is_cancelled();
    undo_append(before);
    cancelled_.store(cancelled_meanwhile, std::memory_order_relaxed);
    return request.outcome;
}

// Without logits. False when it was cancelled.
bool Session::compute_pending() {
    while (n_pending() > 0) {
        StepRequest request;
        ask_for_pending(request, 0);
        request.reuses_prefix = true;
        engine().scheduler().run({&request, 1});
        take_result(request);
        if (request.outcome != StepOutcome::kCancelled) continue;
        cancelled_.store(false, std::memory_order_relaxed);
        return false;
    }
    return true;
}

SessionStats Session::stats() const {
    return {.n_prompt_tokens = counters_.prompt_tokens,
            .n_reused_tokens = counters_.reused_tokens,
            .n_computed_tokens = counters_.computed_tokens,
            .n_recomputed_tokens = counters_.recomputed_tokens,
            .n_generated_tokens = counters_.generated_tokens,
            .n_steps = counters_.steps,
            .prompt_ns = counters_.prompt_ns,
            .generation_ns = counters_.generation_ns};
}

}  // namespace inlay
