#include <string>

#include "api/handles.h"
#include "api/host_streams.h"
#include "api/versioned_struct.h"

using namespace inlay::api;
using inlay::EngineCache;
using inlay::SaveSink;
using inlay::SaveSource;
using inlay::Session;

namespace {

int32_t save_session(inlay_session* session, SaveSink& sink) {
    const auto shared = require(session, "session").share("session");
    const Session::Call call(*shared);
    shared->save(sink);
    return INLAY_OK;
}

int32_t load_session(inlay_session* session, uint32_t flags, SaveSource& source, inlay_load_result* result) {
    if (result) clear_result(result, "result");
    check_flags(flags, INLAY_LOAD_TRUSTED, "flags");
    const auto shared = require(session, "session").share("session");
    const Session::Call call(*shared);
    const inlay::LoadOutcome outcome = shared->load(source, (flags & INLAY_LOAD_TRUSTED) != 0);
    inlay_load_result ours{};
    ours.is_shared = outcome.is_shared;
    ours.same_numerics = outcome.same_numerics;
    ours.n_tokens = outcome.n_tokens;
    ours.n_computed_tokens = outcome.n_computed;
    if (result) write_struct(ours, result);
    return INLAY_OK;
}

int32_t save_cache(const inlay_cache* cache, SaveSink& sink) {
    require(cache, "cache").share("cache")->save_pins(sink);
    return INLAY_OK;
}

int32_t load_cache(const inlay_cache* cache, uint32_t flags, SaveSource& source, inlay_cache_load_result* result) {
    if (result) clear_result(result, "result");
    check_flags(flags, INLAY_LOAD_TRUSTED, "flags");
    const auto shared = require(cache, "cache").share("cache");
    if ((flags & INLAY_LOAD_TRUSTED) == 0)
        invalid("flags is 0: pins are there for all sessions to find, so it takes INLAY_LOAD_TRUSTED");
    const EngineCache::LoadedPins loaded = shared->load_pins(source);
    inlay_cache_load_result ours{};
    ours.first_pin = loaded.first_id;
    ours.n_pins = loaded.n_pins;
    ours.n_tokens = loaded.n_tokens;
    if (result) write_struct(ours, result);
    return INLAY_OK;
}

// Calls save(sink) and keeps the rule for buffers.
template <typename Save>
int32_t save_to_buffer(void* buffer, size_t capacity, size_t* needed, inlay_error** error, const Save& save) {
    if (needed) *needed = 0;
    return guarded(error, [&] {
        require(needed, "needed");
        BufferSink sink(buffer, capacity);
        save(sink);
        *needed = sink.n_needed();
        if (!sink.is_too_small()) return INLAY_OK;
        return report(error, INLAY_E_BUFFER_TOO_SMALL,
                      "capacity is " + std::to_string(capacity) + " and " + std::to_string(*needed) + " are needed");
    });
}

BufferSource buffer_source(const void* bytes, size_t size) {
    if (size != 0 && !bytes) invalid("bytes is NULL");
    return {bytes, size};
}

}  // namespace

int32_t inlay_session_save(inlay_session* session, inlay_save_callback write, void* user, inlay_error** error) {
    return guarded(error, [&] {
        if (!write) invalid("write is NULL");
        CallbackSink sink(write, user);
        return save_session(session, sink);
    });
}

int32_t inlay_session_save_to_buffer(inlay_session* session, void* buffer, size_t capacity, size_t* needed,
                                     inlay_error** error) {
    return save_to_buffer(buffer, capacity, needed, error, [&](SaveSink& sink) { save_session(session, sink); });
}

int32_t inlay_session_load(inlay_session* session, uint32_t flags, inlay_load_callback read, void* user,
                           inlay_load_result* result, inlay_error** error) {
    return guarded(error, [&] {
        if (!read) invalid("read is NULL");
        CallbackSource source(read, user);
        return load_session(session, flags, source, result);
    });
}

int32_t inlay_session_load_from_buffer(inlay_session* session, uint32_t flags, const void* bytes, size_t size,
                                       inlay_load_result* result, inlay_error** error) {
    return guarded(error, [&] {
        BufferSource source = buffer_source(bytes, size);
        return load_session(session, flags, source, result);
    });
}

int32_t inlay_cache_save(const inlay_cache* cache, inlay_save_callback write, void* user, inlay_error** error) {
    return guarded(error, [&] {
        if (!write) invalid("write is NULL");
        CallbackSink sink(write, user);
        return save_cache(cache, sink);
    });
}

int32_t inlay_cache_save_to_buffer(const inlay_cache* cache, void* buffer, size_t capacity, size_t* needed,
                                   inlay_error** error) {
    return save_to_buffer(buffer, capacity, needed, error, [&](SaveSink& sink) { save_cache(cache, sink); });
}

int32_t inlay_cache_load(const inlay_cache* cache, uint32_t flags, inlay_load_callback read, void* user,
                         inlay_cache_load_result* result, inlay_error** error) {
    return guarded(error, [&] {
        if (!read) invalid("read is NULL");
        CallbackSource source(read, user);
        return load_cache(cache, flags, source, result);
    });
}

int32_t inlay_cache_load_from_buffer(const inlay_cache* cache, uint32_t flags, const void* bytes, size_t size,
                                     inlay_cache_load_result* result, inlay_error** error) {
    return guarded(error, [&] {
        BufferSource source = buffer_source(bytes, size);
        return load_cache(cache, flags, source, result);
    });
}
