#include <cmath>
#include <string>

#include "api/chunk.h"
#include "api/handles.h"
#include "api/token_argument.h"
#include "api/versioned_struct.h"

using namespace inlay::api;
using inlay::Chunk;
using inlay::GenerationOptions;
using inlay::NextOutcome;
using inlay::Session;

namespace {

float number_in(float value, float at_most, const char* name) {
    if (!(value >= 0 && value <= at_most))
        invalid(std::string(name) + " is " + std::to_string(value) + ", outside 0 to " + std::to_string(at_most));
    return value;
}

GenerationOptions generation_options(const inlay_generation_options& options) {
    check_flags(options.flags, INLAY_GENERATION_IGNORE_END, "options->flags");
    GenerationOptions ours;
    ours.ignore_end = (options.flags & INLAY_GENERATION_IGNORE_END) != 0;
    ours.max_new_tokens = options.max_new_tokens;
    ours.sampling.seed = options.seed;
    ours.sampling.temperature =
        number_in(options.temperature, inlay::SamplingOptions::kMaxTemperature, "options->temperature");
    ours.sampling.top_p = number_in(options.top_p, 1, "options->top_p");
    if (ours.sampling.top_p == 0) ours.sampling.top_p = 1;
    ours.sampling.min_p = number_in(options.min_p, 1, "options->min_p");
    ours.sampling.top_k = options.top_k;
    return ours;
}

// The call that runs on behalf of `run`: one chunk after the other until the text ends.
int32_t run_session(Session& session, inlay_chunk_callback on_chunk, void* user, inlay_chunk& last) {
    while (true) {
        Chunk chunk;
        const NextOutcome outcome = session.next(chunk);
        last = chunk_of(chunk);
        const bool empty = last.n_tokens == 0 && last.text_size == 0;
        if (on_chunk && !empty && on_chunk(user, &last) != 0)
            throw inlay::Error(INLAY_E_CANCELLED, "on_chunk ended the run");
        if (outcome == NextOutcome::kEnd) return INLAY_END;
    }
}

}  // namespace

int32_t inlay_generation_options_init(inlay_generation_options* options, uint32_t struct_size) {
    return init_struct(options, struct_size);
}

int32_t inlay_session_set_generation(inlay_session* session, const inlay_generation_options* options,
                                     inlay_error** error) {
    return guarded(error, [&] {
        const auto shared = require(session, "session").share("session");
        const GenerationOptions ours = generation_options(read_struct(options, "options"));
        const Session::Call call(*shared);
        shared->set_generation(ours);
        return INLAY_OK;
    });
}

int32_t inlay_session_next(inlay_session* session, inlay_chunk* chunk, inlay_error** error) {
    return guarded(error, [&] {
        clear_result(chunk, "chunk");
        const auto shared = require(session, "session").share("session");
        const Session::Call call(*shared);
        Chunk ours;
        const NextOutcome outcome = shared->next(ours);
        write_struct(chunk_of(ours), chunk);
        return status_of(outcome);
    });
}

int32_t inlay_session_run(inlay_session* session, inlay_chunk_callback on_chunk, void* user, inlay_chunk* last,
                          inlay_error** error) {
    return guarded(error, [&] {
        if (last) clear_result(last, "last");
        const auto shared = require(session, "session").share("session");
        const Session::Call call(*shared);
        inlay_chunk ours{};
        const int32_t status = run_session(*shared, on_chunk, user, ours);
        if (last) write_struct(ours, last);
        return status;
    });
}

void inlay_session_cancel(const inlay_session* session) {
    if (const Session* object = session ? session->get() : nullptr) object->cancel();
}

int32_t inlay_session_forward(inlay_session* session, const int32_t* tokens, size_t n_tokens, size_t logits_from,
                              inlay_error** error) {
    return guarded(error, [&] {
        const auto shared = require(session, "session").share("session");
        const inlay::Engine& engine = shared->engine();
        if (n_tokens == 0 || n_tokens > engine.max_step_tokens())
            invalid("n_tokens is " + std::to_string(n_tokens) + ", outside 1 to " +
                    std::to_string(engine.max_step_tokens()));
        if (logits_from > n_tokens) invalid("logits_from is " + std::to_string(logits_from) + ", above n_tokens");
        const std::span<const int32_t> ids = token_argument(tokens, n_tokens, engine.n_vocabulary());
        const Session::Call call(*shared);
        if (!shared->forward(ids, logits_from)) throw inlay::Error(INLAY_E_CANCELLED, "the session was cancelled");
        return INLAY_OK;
    });
}

int32_t inlay_session_logits(inlay_session* session, const float** logits, size_t* n_rows, size_t* n_vocabulary,
                             inlay_error** error) {
    if (logits) *logits = nullptr;
    if (n_rows) *n_rows = 0;
    if (n_vocabulary) *n_vocabulary = 0;
    return guarded(error, [&] {
        require(logits, "logits");
        const auto shared = require(session, "session").share("session");
        const Session::Call call(*shared);
        const std::span<const float> rows = shared->logits();
        if (rows.empty())
            throw inlay::Error(INLAY_E_STATE,
                               "the session has no logits: inlay_session_next and inlay_session_forward compute some, "
                               "and what changes "
                               "the sequence ends them");
        *logits = rows.data();
        if (n_rows) *n_rows = rows.size() / shared->engine().n_vocabulary();
        if (n_vocabulary) *n_vocabulary = shared->engine().n_vocabulary();
        return INLAY_OK;
    });
}
