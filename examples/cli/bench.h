// What the ways to measure speed share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arguments.h"
#include "report.h"

namespace cli {

struct BenchArguments {
    ModelArguments model;
    ComputeArguments compute;
    CacheArguments cache;
    std::uint32_t n_prompt = 512;
    std::uint32_t n_generate = 128;
    std::uint32_t n_depth = 0;
    std::uint32_t n_parallel = 0;
    std::uint32_t n_shared_prefix = 0;
    std::uint32_t n_repetitions = 5;
    std::uint32_t n_reloads = 0;
    bool warm_prefix = false;

    // Of one session.
    std::uint64_t n_tokens() const { return std::uint64_t{n_depth} + std::max(n_prompt, n_generate); }
};

// What opening the model took.
struct Loading {
    double milliseconds = 0;
    std::optional<std::uint64_t> resident_bytes = {};  // of the process after it; not every system tells
    std::vector<double> reloads = {};                  // milliseconds of opening it again, after it was released
};

// Many sessions at a time, by one thread.
int bench_parallel(const BenchArguments& arguments, const inlay::Engine& engine, const Loading& loading,
                   const Interrupt& interrupt, bool json);

// NAME is the median, NAME_min and NAME_max the extremes, NAME_runs all; null when nothing was measured.
void add_summary(Json& result, const std::string& name, const std::vector<double>& runs);
// One line; none when nothing was measured.
void print_summary(const std::string& what, const std::vector<double>& runs);
// Memory of this process that is in RAM, where the system tells it.
std::optional<std::uint64_t> resident_bytes();
// What was asked for, and with which means it was computed.
void add_conditions(Json& result, const BenchArguments& arguments, const inlay::EngineInfo& info,
                    const Loading& loading);

}  // namespace cli
