// What the ways to measure speed share.
#pragma once

#include <algorithm>
#include <cstdint>
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

    // Of one session.
    std::uint64_t n_tokens() const { return std::uint64_t{n_depth} + std::max(n_prompt, n_generate); }
};

// Many sessions at a time, by one thread.
int bench_parallel(const BenchArguments& arguments, const inlay::Engine& engine, const Interrupt& interrupt, bool json);

// NAME is the median, NAME_min and NAME_max the extremes, NAME_runs all; null when nothing was measured.
void add_summary(Json& result, const std::string& name, const std::vector<double>& runs);
// One line; none when nothing was measured.
void print_summary(const std::string& what, const std::vector<double>& runs);
// What was asked for, and with which means it was computed.
void add_conditions(Json& result, const BenchArguments& arguments, const inlay::EngineInfo& info);

}  // namespace cli
