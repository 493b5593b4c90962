#include <string>

#include "api/handles.h"
#include "api/token_argument.h"
#include "api/versioned_struct.h"

using namespace inlay::api;
using inlay::Session;
using inlay::SessionOptions;

int32_t inlay_session_options_init(inlay_session_options* options, uint32_t struct_size) {
    return init_struct(options, struct_size);
}

int32_t inlay_session_create(const inlay_cache* cache, const inlay_session_options* options, inlay_session** session,
                             inlay_error** error) {
    if (session) *session = nullptr;
    return guarded(error, [&] {
        require(session, "session");
        const auto shared = require(cache, "cache").share("cache");
        const inlay_session_options theirs = read_struct(options, "options");
        check_at_most(theirs.context_tokens, INT32_MAX, "options->context_tokens");
        *session = new inlay_session(
            std::make_shared<Session>(shared, SessionOptions{.context_tokens = theirs.context_tokens,
                                                             .cache_salt = theirs.cache_salt,
                                                             .reserve_tokens = theirs.reserve_tokens}));
        return INLAY_OK;
    });
}

int32_t inlay_session_fork(inlay_session* session, uint64_t n_tokens, inlay_session** forked, inlay_error** error) {
    if (forked) *forked = nullptr;
    return guarded(error, [&] {
        require(forked, "forked");
        const auto shared = require(session, "session").share("session");
        const Session::Call call(*shared);
        *forked = new inlay_session(shared->fork(n_tokens == UINT64_MAX ? shared->length() : n_tokens));
        return INLAY_OK;
    });
}

void inlay_session_retain(const inlay_session* session) {
    retain_handle(session);
}
void inlay_session_release(const inlay_session* session) {
    release_handle(session);
}

int32_t inlay_session_append_tokens(inlay_session* session, const int32_t* tokens, size_t n_tokens,
                                    inlay_error** error) {
    return guarded(error, [&] {
        const auto shared = require(session, "session").share("session");
        const Session::Call call(*shared);
        shared->append(token_argument(tokens, n_tokens, shared->engine().n_vocabulary()));
        return INLAY_OK;
    });
}

int32_t inlay_session_append_text(inlay_session* session, const char* text, size_t text_size, uint32_t flags,
                                  inlay_error** error) {
    return guarded(error, [&] {
        check_flags(flags, INLAY_TEXT_ADD_SPECIAL | INLAY_TEXT_PARSE_SPECIAL, "flags");
        const std::string_view bytes = text_argument(text, text_size, "text");
        const auto shared = require(session, "session").share("session");
        const Session::Call call(*shared);
        shared->append(shared->engine().tokenizer().tokenize(bytes, (flags & INLAY_TEXT_ADD_SPECIAL) != 0,
                                                             (flags & INLAY_TEXT_PARSE_SPECIAL) != 0));
        return INLAY_OK;
    });
}

int32_t inlay_session_length(const inlay_session* session, uint64_t* n_tokens, inlay_error** error) {
    if (n_tokens) *n_tokens = 0;
    return guarded(error, [&] {
        require(n_tokens, "n_tokens") = require(session, "session").share("session")->length();
        return INLAY_OK;
    });
}

int32_t inlay_session_tokens(inlay_session* session, uint64_t first, int32_t* tokens, size_t capacity, size_t* needed,
                             inlay_error** error) {
    if (needed) *needed = 0;
    return guarded(error, [&] {
        require(needed, "needed");
        const auto shared = require(session, "session").share("session");
        const Session::Call call(*shared);
        const std::span<const int32_t> all = shared->tokens();
        if (first > all.size())
            invalid("first is " + std::to_string(first) + " of " + std::to_string(all.size()) + " tokens");
        const std::span<const int32_t> wanted = all.subspan(first);
        return write_buffer(error, wanted.data(), wanted.size(), tokens, capacity, *needed);
    });
}

int32_t inlay_session_truncate(inlay_session* session, uint64_t n_tokens, inlay_error** error) {
    return guarded(error, [&] {
        const auto shared = require(session, "session").share("session");
        const Session::Call call(*shared);
        shared->truncate(n_tokens);
        return INLAY_OK;
    });
}

int32_t inlay_session_reset(inlay_session* session, inlay_error** error) {
    return guarded(error, [&] {
        const auto shared = require(session, "session").share("session");
        const Session::Call call(*shared);
        shared->reset();
        return INLAY_OK;
    });
}

int32_t inlay_session_get_stats(const inlay_session* session, inlay_session_stats* stats, inlay_error** error) {
    return guarded(error, [&] {
        clear_result(stats, "stats");
        const inlay::SessionStats theirs = require(session, "session").share("session")->stats();
        inlay_session_stats ours{};
        ours.n_prompt_tokens = theirs.n_prompt_tokens;
        ours.n_reused_tokens = theirs.n_reused_tokens;
        ours.n_computed_tokens = theirs.n_computed_tokens;
        ours.n_recomputed_tokens = theirs.n_recomputed_tokens;
        ours.n_generated_tokens = theirs.n_generated_tokens;
        ours.n_steps = theirs.n_steps;
        ours.prompt_ns = theirs.prompt_ns;
        ours.generation_ns = theirs.generation_ns;
        write_struct(ours, stats);
        return INLAY_OK;
    });
}
