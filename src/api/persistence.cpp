#include <string>

#include "api/handles.h"
#include "api/versioned_struct.h"
#include "engine/saved_session_stream.h"

using namespace inlay::api;
using inlay::Error;
using inlay::Session;

namespace {

// The host's callbacks as the library's streams.
class HostSink final : public inlay::SaveSink {
public:
    HostSink(inlay_save_callback callback, void* user) : write_(callback), user_(user) {}

    void write(const void* bytes, size_t n) override {
        if (const int32_t status = write_(user_, bytes, n); status != 0)
            throw Error(INLAY_E_IO, "write returned " + std::to_string(status));
    }

private:
    inlay_save_callback write_;
    void* user_;
};

class HostSource final : public inlay::SaveSource {
public:
    HostSource(inlay_load_callback callback, void* user) : read_(callback), user_(user) {}

    size_t read(void* bytes, size_t n) override {
        size_t n_read = 0;
        if (const int32_t status = read_(user_, bytes, n, &n_read); status != 0)
            throw Error(INLAY_E_IO, "read returned " + std::to_string(status));
        if (n_read > n)
            throw Error(INLAY_E_IO, "read gave " + std::to_string(n_read) + " bytes for " + std::to_string(n));
        return n_read;
    }

private:
    inlay_load_callback read_;
    void* user_;
};

}  // namespace

int32_t inlay_session_save(inlay_session* session, inlay_save_callback write, void* user, inlay_error** error) {
    return guarded(error, [&] {
        if (!write) invalid("write is NULL");
        const auto shared = require(session, "session").share("session");
        const Session::Call call(*shared);
        HostSink sink(write, user);
        shared->save(sink);
        return INLAY_OK;
    });
}

int32_t inlay_session_load(inlay_session* session, uint32_t flags, inlay_load_callback read, void* user,
                           inlay_load_result* result, inlay_error** error) {
    return guarded(error, [&] {
        if (result) clear_result(result, "result");
        check_flags(flags, INLAY_LOAD_TRUSTED, "flags");
        if (!read) invalid("read is NULL");
        const auto shared = require(session, "session").share("session");
        const Session::Call call(*shared);
        HostSource source(read, user);
        const inlay::LoadOutcome outcome = shared->load(source, (flags & INLAY_LOAD_TRUSTED) != 0);
        inlay_load_result ours{};
        ours.is_shared = outcome.is_shared;
        ours.same_numerics = outcome.same_numerics;
        ours.n_tokens = outcome.n_tokens;
        ours.n_computed_tokens = outcome.n_computed;
        if (result) write_struct(ours, result);
        return INLAY_OK;
    });
}
