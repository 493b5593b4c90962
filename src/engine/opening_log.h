// What the host's log is told about the opening of a model: what was opened, and what of the file was left aside.
#pragma once

#include <chrono>

#include "base/log.h"
#include "model/model_file.h"

namespace inlay {

class Engine;

class OpeningLog {
public:
    explicit OpeningLog(const Log& log) : log_(log) {}

    void began(const ModelFile& file, const ModelSource& source) const;
    void ended(const Engine& engine, bool on_system_pages) const;

private:
    void warn_of_vocabulary(const Engine& engine) const;
    void warn_of_unused_tensors(const Engine& engine) const;

    const Log& log_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace inlay
