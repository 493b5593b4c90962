#include "api/logger.h"

#include "api/boundary.h"
#include "api/versioned_struct.h"

namespace inlay::api {

HostLog::HostLog(const inlay_logger& logger)
    : logger_(read_struct(&logger, "options->logger")), on_release_(logger_.on_release, logger_.user) {
    require(logger_.log, "options->logger->log");
}

void HostLog::write(LogLevel level, const std::string& record) {
    const auto value = static_cast<int32_t>(level);
    if (value >= logger_.level) logger_.log(logger_.user, value, record.c_str(), record.size());
}

}  // namespace inlay::api
