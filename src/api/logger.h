// The host's log as the library's LogSink.
#pragma once

#include <string>

#include "api/release_callback.h"
#include "base/log.h"
#include "inlay/inlay.h"

namespace inlay::api {

class HostLog final : public LogSink {
public:
    // INLAY_E_INVALID_ARGUMENT naming what is missing.
    explicit HostLog(const inlay_logger& logger);

    void write(LogLevel level, const std::string& record) override;

    ReleaseCallback& on_release() { return on_release_; }

private:
    inlay_logger logger_;
    ReleaseCallback on_release_;
};

}  // namespace inlay::api
