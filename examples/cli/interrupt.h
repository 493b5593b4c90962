// Ctrl-C: the first one cancels what the library is doing, so that what was computed can still be printed; the second
// one ends the program as usual. inlay_session_cancel only sets a flag, so a signal handler may call it.
#pragma once

#include <optional>

#include "inlay/inlay.hpp"

namespace cli {

// One may live at a time.
class Interrupt {
public:
    Interrupt();
    ~Interrupt();
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;

    // The session to cancel, from now on; it lives as long as it is watched.
    void watch(const inlay::Session& session);

    bool requested() const;
    // Throws INLAY_E_CANCELLED with the sentence when requested: while there is no session yet, and in loops, since
    // reset and truncate clear a session's own request.
    void check(const char* sentence) const;

private:
    std::optional<inlay::Canceller> canceller_;
};

}  // namespace cli
