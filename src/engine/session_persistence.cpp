// The part of Session that leaves the process and comes back.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "engine/saved_session.h"
#include "engine/session.h"

namespace inlay {
namespace {

bool is_within(float value, float at_most) {
    return value >= 0 && value <= at_most;
}

GenerationOptions generation_of(const SavedState& state) {
    const bool fits = is_within(state.temperature, SamplingOptions::kMaxTemperature) && is_within(state.top_p, 1) &&
                      is_within(state.min_p, 1) && (state.flags & ~SavedState::kIgnoreEnd) == 0;
    if (!fits) throw_damaged("its generation options are outside their ranges");
    GenerationOptions options;
    options.sampling = {state.seed, state.temperature, state.top_p, state.min_p, state.top_k};
    options.ignore_end = (state.flags & SavedState::kIgnoreEnd) != 0;
    options.max_new_tokens = state.max_new_tokens;
    return options;
}

// What a text has come to, as far as it shows: a session that could not have got there would not go on as any other.
FinishReason finish_of(const SavedState& state) {
    // A cancel is reported and over: no session is left with it.
    if (state.finish >= static_cast<uint32_t>(FinishReason::kCancelled))
        throw_damaged("its ending is none that a session can have");
    const auto finish = static_cast<FinishReason>(state.finish);
    if (state.n_tokens == 0 && (finish != FinishReason::kNone || state.n_waiting != 0))
        throw_damaged("it has a text without tokens");
    // Tokens are generated after a prompt, each from all before it.
    if (state.n_new_tokens != 0 &&
        (state.n_new_tokens >= state.n_tokens || state.highest_computed + 1 < state.n_tokens))
        throw_damaged("more tokens were generated than can have been");
    const bool has_limit = state.max_new_tokens != 0;
    if (has_limit && state.n_new_tokens > state.max_new_tokens)
        throw_damaged("more tokens were generated than it lets be");
    if (has_limit && state.n_new_tokens == state.max_new_tokens && finish == FinishReason::kNone)
        throw_damaged("its text goes on after the last token that it lets be");
    if (finish == FinishReason::kStop && state.highest_computed < state.n_tokens)
        throw_damaged("its text was ended before it was computed");
    return finish;
}

// Text of which the rest is still to come.
Utf8Stream text_of(const SavedState& state) {
    Utf8Stream text;
    std::string delivered;
    const size_t n = std::min<size_t>(state.n_waiting, sizeof state.waiting);
    text.push({reinterpret_cast<const char*>(state.waiting), n}, delivered);
    const bool is_padded = std::all_of(state.waiting + n, std::end(state.waiting), [](auto byte) { return byte == 0; });
    const bool has_ended = state.finish != static_cast<uint32_t>(FinishReason::kNone);  // then all of it left
    if (text.n_waiting() != state.n_waiting || !delivered.empty() || !is_padded || (has_ended && n != 0))
        throw_damaged("its text is no part of a character");
    return text;
}

}  // namespace

SavedState Session::saved_state(size_t n_computed) const {
    SavedState state;
    state.n_tokens = sequence_.tokens().size();
    state.n_computed = n_computed;
    state.highest_computed = std::max<uint64_t>(highest_computed_, n_computed);
    state.n_new_tokens = n_new_tokens_;
    state.seed = generation_.sampling.seed;
    state.max_new_tokens = generation_.max_new_tokens;
    state.temperature = generation_.sampling.temperature;
    state.top_p = generation_.sampling.top_p;
    state.min_p = generation_.sampling.min_p;
    state.top_k = generation_.sampling.top_k;
    state.flags = generation_.ignore_end ? SavedState::kIgnoreEnd : 0;
    state.finish = static_cast<uint32_t>(finish_);
    state.n_waiting = static_cast<uint32_t>(text_.n_waiting());
    std::ranges::copy(text_.waiting(), state.waiting);
    return state;
}

void Session::save(SaveSink& sink) {
    // Holds the blocks, so that others may compute, and take blocks from whom they like, while the host writes.
    struct Hold {
        Session& session;
        std::optional<Sequence> sequence{std::in_place, session.cache(), session.sequence_.extra_key(), true};

        ~Hold() {
            sequence.reset();
            session.cache().abandon_step(session.sequence_);  // its promise needs no copy of the last block any more
        }
    } held{*this};
    cache().fork(sequence_, *held.sequence, sequence_.tokens().size());
    const bool has_foreign_blocks = was_foreign_ && held.sequence->is_private();
    write_saved_session(sink, engine(), cache().layout(), saved_state(held.sequence->n_computed()), *held.sequence,
                        has_foreign_blocks);
}

LoadOutcome Session::load(SaveSource& source, bool is_trusted) {
    if (!sequence_.tokens().empty())
        throw Error(INLAY_E_STATE, "the session has " + std::to_string(sequence_.tokens().size()) +
                                       " tokens: load into a new one, or reset it first");
    const SavedSession saved = read_saved_session(
        source, engine(), cache().layout(), {.n_tokens = options_.context_tokens, .n_blocks = cache().n_blocks()});
    const SavedState& state = saved.state;
    const GenerationOptions generation = generation_of(state);
    const FinishReason finish = finish_of(state);
    const Utf8Stream text = text_of(state);
    const bool may_share = is_trusted && saved.same_numerics;
    const auto n_computed = static_cast<size_t>(state.n_computed);
    const BlockNeed need = engine().scheduler().restore(cache(), sequence_, saved.tokens,
                                                        {n_computed, saved.first_blocks, saved.pages.get()}, may_share);
    if (!need) throw cache_full("the session", need);

    start_text();
    generation_ = generation;
    finish_ = finish;
    text_ = text;
    n_new_tokens_ = state.n_new_tokens;
    highest_computed_ = state.highest_computed;
    was_foreign_ = !saved.same_numerics;
    return {.n_tokens = saved.tokens.size(),
            .n_computed = n_computed,
            .is_shared = may_share && cache().reuses(),
            .same_numerics = saved.same_numerics};
}

}  // namespace inlay
