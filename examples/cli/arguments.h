// Arguments that several commands share: which model and how it computes, what the cache holds, where tokens come from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "inlay/inlay.hpp"
#include "interrupt.h"

namespace cli {

// The model file; --json, which every command takes, comes with it.
struct ModelArguments {
    std::string path;
    bool json = false;

    void add_to(CLI::App& app);
    inlay::Engine open_vocabulary() const;
};

struct ComputeArguments {
    std::uint32_t n_threads = 0;
    std::int32_t compute = INLAY_COMPUTE_AUTO;
    std::int32_t instruction_set = INLAY_INSTRUCTIONS_BEST;

    void add_to(CLI::App& app);
    // Loads the weights. `max_step_tokens` of 0 is the library's default; Ctrl-C gives up.
    inlay::Engine open(const ModelArguments& model, const Interrupt& interrupt,
                       std::uint32_t max_step_tokens = 0) const;
};

struct CacheArguments {
    std::int32_t kv_type = INLAY_KV_F16;

    void add_to(CLI::App& app);
    // A cache with room for one sequence of `n_tokens`.
    inlay::Cache create(const inlay::Engine& engine, std::uint64_t n_tokens, std::uint32_t flags) const;
};

// Tokens as text on the command line, as text in a file, or as ids.
struct PromptArguments {
    std::string text;
    std::string file;
    std::string ids;
    bool special = false;

    void add_to(CLI::App& app);  // exactly one of them must be given
    std::vector<std::int32_t> tokens(const inlay::Engine& engine) const;
};

// The bytes of a file; "-" is stdin. INLAY_E_IO when it cannot be read.
std::string read_file(const std::string& path);

// Ids separated by commas or spaces, in brackets or not; "@FILE": those in a file. CLI::ValidationError for others.
std::vector<std::int32_t> parse_ids(const std::string& list);

}  // namespace cli
