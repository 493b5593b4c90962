// inlay logits: what the model predicts after each token, as a NumPy file.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>

#include "arguments.h"
#include "command.h"
#include "npy_file.h"
#include "number_option.h"
#include "report.h"
#include "token_rows.h"

namespace cli {
namespace {

struct LogitsArguments {
    ModelArguments model;
    ComputeArguments compute;
    CacheArguments cache;
    PromptArguments prompt;
    std::string out;
    std::uint32_t n_chunk = 0;
    std::uint32_t first = 0;
};

void check_output(const LogitsArguments& arguments, bool json) {
    if (json && arguments.out == kStdout) throw CLI::ValidationError("--out", "stdout is taken by --json");
    if (std::error_code error; std::filesystem::equivalent(arguments.model.path, arguments.out, error))
        throw CLI::ValidationError("--out", "is the model file itself");
}

int logits(const LogitsArguments& arguments, bool json) {
    check_output(arguments, json);
    const Prompt prompt = arguments.prompt.read();
    Interrupt interrupt;
    const inlay::Engine engine = arguments.compute.open(arguments.model, interrupt, !json, arguments.n_chunk);
    const inlay::EngineInfo info = engine.info();
    const std::vector<std::int32_t> tokens = prompt.tokens(engine);
    if (arguments.first >= tokens.size())
        throw CLI::ValidationError("--from", "the last row is " + std::to_string(tokens.size() - 1));

    const inlay::Cache cache = arguments.cache.create(engine, tokens.size(), INLAY_CACHE_NO_REUSE);
    inlay::SessionOptions options;
    options.context_tokens = static_cast<std::uint32_t>(std::max<std::size_t>(tokens.size(), info.context_tokens));
    inlay::Session session(cache, options);
    interrupt.watch(session);

    const std::size_t n_rows = tokens.size() - arguments.first;
    const std::size_t n_chunk = arguments.n_chunk ? arguments.n_chunk : chunk_for_logits(info);
    NpyFile file(arguments.out, n_rows, info.n_vocabulary);
    for_each_row({&session}, tokens.data(), tokens.size(), arguments.first, n_chunk,
                 [&](std::size_t, const std::vector<const float*>& rows, std::size_t) { file.write_row(rows[0]); });
    file.finish();
    if (json)
        print_json({{"file", arguments.out},
                    {"rows", n_rows},
                    {"vocabulary", info.n_vocabulary},
                    {"first_row", arguments.first},
                    {"chunk", n_chunk},
                    {"reused_tokens", session.stats().n_reused_tokens}});
    return kExitSuccess;
}

}  // namespace

Command add_logits(CLI::App& app) {
    CLI::App* command = app.add_subcommand("logits", "Write the logits after each token to a file");
    const auto arguments = std::make_shared<LogitsArguments>();
    arguments->model.add_to(*command);
    arguments->prompt.add_to(*command);
    add_name(*command, "--out", arguments->out, "NumPy file to write, f32 [tokens, vocabulary]; -: stdout")->required();
    add_number(*command, "--from", arguments->first, {0, kMostTokens}, "First row to write");
    add_number(*command, "--chunk", arguments->n_chunk, {0, kMostStepTokens},
               "Tokens computed at a time, at most 4096; the result is the same");
    arguments->cache.add_to(*command);
    arguments->compute.add_to(*command);
    return {command, [arguments](bool json) { return logits(*arguments, json); }};
}

}  // namespace cli
