// Arguments that several commands share: which model and how it computes, what the cache holds, where tokens come from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "inlay/inlay.hpp"
#include "interrupt.h"

namespace cli {

// Adds an option that takes the name of a file, or another text that is not empty.
CLI::Option* add_name(CLI::App& app, const std::string& option, std::string& target, const std::string& description);

// The name of a file to read; "-" is stdin.
CLI::Option* add_input_file(CLI::App& app, std::string& target);

CLI::Option* add_context(CLI::App& app, std::uint32_t& n_tokens);
CLI::Option* add_threads(CLI::App& app, std::uint32_t& n_threads);

struct ModelArguments {
    std::string path;

    void add_to(CLI::App& app);
    inlay::Engine open_vocabulary() const;
};

struct ComputeArguments {
    std::uint32_t n_threads = 0;
    std::int32_t compute = INLAY_COMPUTE_AUTO;
    std::int32_t instruction_set = INLAY_INSTRUCTIONS_BEST;
    bool map_file = false;

    void add_to(CLI::App& app);
    // Loads the weights; Ctrl-C gives up. `max_step_tokens` of 0 is the library's default.
    inlay::Engine open(const ModelArguments& model, const Interrupt& interrupt, bool show_progress,
                       std::uint32_t max_step_tokens = 0) const;
};

// Element types of keys and values.
struct KvTypeArguments {
    std::int32_t both = INLAY_KV_F16;
    std::int32_t key = INLAY_KV_DEFAULT;  // as both, as the next
    std::int32_t value = INLAY_KV_DEFAULT;

    void add_to(CLI::App& app);
    std::int32_t key_type() const { return key == INLAY_KV_DEFAULT ? both : key; }
    std::int32_t value_type() const { return value == INLAY_KV_DEFAULT ? both : value; }
    // Of one type "T", of two "T_OF_KEYS/T_OF_VALUES".
    std::string name() const;
};

struct CacheArguments {
    KvTypeArguments kv;
    std::uint64_t megabytes = 0;

    void add_to(CLI::App& app);
    // A cache of the budget that was given, or with room for `n_sequences` of `n_tokens` each.
    inlay::Cache create(const inlay::Engine& engine, std::uint64_t n_tokens, std::uint32_t flags,
                        std::uint64_t n_sequences = 1) const;
};

// A text that a model's tokenizer has yet to see, or ids in its place.
struct Prompt {
    std::string text;
    std::uint32_t text_flags = 0;
    std::optional<std::vector<std::int32_t>> ids;

    // INLAY_E_INVALID_ARGUMENT when there are none.
    std::vector<std::int32_t> tokens(const inlay::Engine& engine) const;
};

// Tokens as text on the command line, as text in a file, or as ids.
struct PromptArguments {
    std::string text;
    std::string file;
    std::string ids;
    bool special = false;

    void add_to(CLI::App& app, bool is_optional = false);  // exactly one of them must be given, or one at most
    bool given() const;
    bool reads_stdin() const;
    // Reads what was given. To be called before a model is loaded: what cannot be read is told at once.
    Prompt read() const;

private:
    const CLI::App* sources_ = nullptr;
};

}  // namespace cli
