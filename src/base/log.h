// What is worth telling a host beside statuses: few records, each one whole line. The library writes nothing itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "inlay/inlay.h"

namespace inlay {

enum class LogLevel : int32_t { kInfo = INLAY_LOG_INFO, kWarning = INLAY_LOG_WARNING };

// Takes records from any thread, several at once.
class LogSink {
public:
    virtual ~LogSink() = default;
    virtual void write(LogLevel level, const std::string& record) = 0;
};

class Log {
public:
    Log() = default;  // tells nobody
    explicit Log(std::shared_ptr<LogSink> sink) : sink_(std::move(sink)) {}

    bool has_sink() const { return sink_ != nullptr; }
    void info(const std::string& record) const { write(LogLevel::kInfo, record); }
    void warn(const std::string& record) const { write(LogLevel::kWarning, record); }

private:
    void write(LogLevel level, const std::string& record) const {
        if (sink_) sink_->write(level, record);
    }

    std::shared_ptr<LogSink> sink_;
};

}  // namespace inlay
