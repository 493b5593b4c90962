#include "base/workers.h"

#include <string>
#include <utility>

#include "api/engine_options.h"
#include "api/handles.h"
#include "api/versioned_struct.h"

using namespace inlay::api;
using inlay::Error;
using inlay::Workers;

namespace {

// What handles and engines hold. Lent threads hold the workers alone: with the last of the others gone nobody could
// stop them any more, so that does.
struct Owner {
    std::shared_ptr<Workers> workers;

    explicit Owner(std::shared_ptr<Workers> made) : workers(std::move(made)) {}
    ~Owner() { workers->stop(); }
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
};

bool is_lent(const Workers& workers) {
    return workers.threads() == Workers::Threads::kLent;
}

}  // namespace

int32_t inlay_workers_options_init(inlay_workers_options* options, uint32_t struct_size) {
    return init_struct(options, struct_size);
}

int32_t inlay_workers_create(const inlay_workers_options* options, inlay_workers** workers, inlay_error** error) {
    if (workers) *workers = nullptr;
    return guarded(error, [&] {
        require(workers, "workers");
        const inlay_workers_options theirs = read_struct(options, "options");
        check_flags(theirs.flags, INLAY_WORKERS_LENT, "options->flags");
        check_at_most(theirs.n_threads, kMaxThreads, "options->n_threads");
        check_reserved(theirs.reserved, "options->reserved");
        const uint32_t n_threads = theirs.n_threads != 0 ? theirs.n_threads : inlay::available_processors();
        const bool lent = (theirs.flags & INLAY_WORKERS_LENT) != 0;
        const auto owner = std::make_shared<Owner>(
            std::make_shared<Workers>(n_threads, lent ? Workers::Threads::kLent : Workers::Threads::kOwn));
        *workers = new inlay_workers(std::shared_ptr<Workers>(owner, owner->workers.get()));
        return INLAY_OK;
    });
}

void inlay_workers_retain(const inlay_workers* workers) {
    retain_handle(workers);
}
void inlay_workers_release(const inlay_workers* workers) {
    release_handle(workers);
}

int32_t inlay_workers_run(const inlay_workers* workers, inlay_error** error) {
    return guarded(error, [&] {
        const std::shared_ptr<Workers> shared = require(workers, "workers").share("workers")->shared_from_this();
        if (!is_lent(*shared)) throw Error(INLAY_E_STATE, "workers was created without INLAY_WORKERS_LENT");
        shared->work_until_stopped();
        return INLAY_OK;
    });
}

void inlay_workers_stop(const inlay_workers* workers) {
    Workers* const object = workers ? workers->get() : nullptr;
    if (object && is_lent(*object)) object->stop();
}
