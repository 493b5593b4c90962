#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/chunk.h"
#include "api/handles.h"
#include "api/versioned_struct.h"
#include "engine/joint_step.h"

using namespace inlay::api;
using inlay::NextResult;
using inlay::Session;

namespace {

constexpr size_t kMaxSessions = 65536;

// The caller's arrays, of which chunks may be of another size than ours.
struct Outputs {
    inlay_chunk* chunks;
    size_t chunk_size;
    int32_t* statuses;
    inlay_error** errors;  // may be null

    inlay_chunk* chunk(size_t i) const {
        return reinterpret_cast<inlay_chunk*>(reinterpret_cast<unsigned char*>(chunks) + i * chunk_size);
    }

    void clear(size_t n) const {
        std::fill_n(statuses, n, 0);
        if (errors) std::fill_n(errors, n, nullptr);
        for (size_t i = 0; i < n; ++i) init_struct(chunk(i), static_cast<uint32_t>(chunk_size));
    }
};

std::vector<std::shared_ptr<Session>> share_all(inlay_session* const* sessions, size_t n) {
    std::vector<std::shared_ptr<Session>> shares;
    shares.reserve(n);
    for (size_t i = 0; i < n; ++i) {
        const std::string name = "sessions[" + std::to_string(i) + "]";
        shares.push_back(require(sessions[i], name.c_str()).share(name.c_str()));
    }
    return shares;
}

void check_chunk_size(size_t chunk_size) {
    if (chunk_size < kSmallestStruct || chunk_size % alignof(inlay_chunk) != 0 || chunk_size > UINT32_MAX)
        invalid("chunk_size is " + std::to_string(chunk_size) + ", set it to sizeof(inlay_chunk)");
}

// A sentence about one of many says which.
[[noreturn]] void rethrow_naming(size_t i, const std::exception_ptr& failure) {
    try {
        std::rethrow_exception(failure);
    } catch (const inlay::Error& error) {
        throw inlay::Error(error.status(), "sessions[" + std::to_string(i) + "]: " + error.sentence());
    }
}

void step_all(const std::vector<std::shared_ptr<Session>>& shares, const Outputs& outputs) {
    const size_t n = shares.size();
    std::vector<NextResult> results(n);
    std::vector<std::optional<Session::Call>> calls(n);
    std::vector<Session*> entered(n);  // null where another call is inside
    for (size_t i = 0; i < n; ++i) try {
            calls[i].emplace(*shares[i]);
            entered[i] = shares[i].get();
        } catch (const inlay::Error&) {
            results[i].failure = std::current_exception();
        }
    inlay::step_together(entered, results);
    for (size_t i = 0; i < n; ++i)
        outputs.statuses[i] = guarded(outputs.errors ? &outputs.errors[i] : nullptr, [&] {
            if (results[i].failure) rethrow_naming(i, results[i].failure);
            write_struct(chunk_of(results[i].chunk), outputs.chunk(i));
            return status_of(results[i].outcome);
        });
}

}  // namespace

int32_t inlay_step(inlay_session* const* sessions, size_t n_sessions, inlay_chunk* chunks, size_t chunk_size,
                   int32_t* statuses, inlay_error** errors, inlay_error** error) {
    const Outputs outputs{chunks, chunk_size, statuses, errors};
    return guarded(error, [&] {
        if (n_sessions == 0) return INLAY_OK;
        if (n_sessions > kMaxSessions)
            invalid("n_sessions is " + std::to_string(n_sessions) + ", above " + std::to_string(kMaxSessions));
        require(statuses, "statuses");
        require(chunks, "chunks");
        check_chunk_size(chunk_size);
        outputs.clear(n_sessions);
        require(sessions, "sessions");
        step_all(share_all(sessions, n_sessions), outputs);
        return INLAY_OK;
    });
}
