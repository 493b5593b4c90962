// The opaque handles of the ABI: a count of the host's references and a share of the object behind. Objects hold their
// parents themselves, so a host may release handles in any order.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "api/boundary.h"
#include "base/workers.h"
#include "engine/engine.h"
#include "engine/engine_cache.h"
#include "engine/session.h"

namespace inlay::api {

template <typename Object>
class Handle {
public:
    explicit Handle(std::shared_ptr<Object> object) : object_(std::move(object)) {}

    // The object, held for the length of a call. In a forked child there are no compute threads and locks may be held
    // by threads that do not exist: there a handle serves nothing.
    std::shared_ptr<Object> share(const char* name) const {
        if (process_ != getpid())
            throw Error(INLAY_E_UNSUPPORTED, std::string(name) + " was made by the process that forked this one");
        return object_;
    }

    void retain() const noexcept { n_references_.fetch_add(1, std::memory_order_relaxed); }
    // True when the last reference is gone and the handle is to be deleted. Never in a forked child.
    bool release() const noexcept {
        return n_references_.fetch_sub(1, std::memory_order_acq_rel) == 1 && process_ == getpid();
    }

    // For calls that can not fail; not in a forked child.
    Object* get() const noexcept { return process_ == getpid() ? object_.get() : nullptr; }

private:
    std::shared_ptr<Object> object_;
    pid_t process_ = getpid();
    mutable std::atomic<uint64_t> n_references_{1};
};

template <typename H>
void retain_handle(const H* handle) noexcept {
    if (handle) handle->retain();
}

template <typename H>
void release_handle(const H* handle) noexcept {
    if (handle && handle->release()) delete handle;
}

}  // namespace inlay::api

struct inlay_workers final : inlay::api::Handle<inlay::Workers> {
    using Handle::Handle;
};
struct inlay_engine final : inlay::api::Handle<const inlay::Engine> {
    using Handle::Handle;
};
struct inlay_cache final : inlay::api::Handle<const inlay::EngineCache> {
    using Handle::Handle;
};
struct inlay_session final : inlay::api::Handle<inlay::Session> {
    using Handle::Handle;
};
