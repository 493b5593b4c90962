// The subcommands of `inlay`. Each has a file of its own, which adds its options and says how it runs.
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

namespace cli {

// Exit statuses, as --help documents them.
inline constexpr int kExitSuccess = 0;
inline constexpr int kExitError = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;

struct Command {
    CLI::App* app;                          // the subcommand, as parsed
    std::function<int(bool json)> execute;  // runs it; returns an exit status or throws
};

Command add_run(CLI::App& app);
Command add_logits(CLI::App& app);
Command add_perplexity(CLI::App& app);
Command add_tokenize(CLI::App& app);
Command add_detokenize(CLI::App& app);
Command add_info(CLI::App& app);
Command add_bench(CLI::App& app);

}  // namespace cli
