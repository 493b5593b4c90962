// Session::next for several sessions by one thread.
#pragma once

#include <exception>
#include <span>

#include "engine/session.h"

namespace inlay {

struct NextResult {
    NextOutcome outcome = NextOutcome::kMore;
    Chunk chunk;
    std::exception_ptr failure;  // what Session::next would have thrown
};

// What `next` would return for each session, in one step of each engine: results [sessions]. A null session is passed
// over. The caller is inside a call on each; none is named twice. Throws std::bad_alloc and has done nothing then.
void step_together(std::span<Session* const> sessions, std::span<NextResult> results);

}  // namespace inlay
