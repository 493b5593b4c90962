// inlay run: continues a text.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "arguments.h"
#include "choice.h"
#include "command.h"
#include "number_option.h"
#include "output_file.h"
#include "report.h"
#include "session_file.h"

namespace cli {
namespace {

using Clock = std::chrono::steady_clock;

struct RunArguments {
    ModelArguments model;
    ComputeArguments compute;
    CacheArguments cache;
    PromptArguments prompt;
    inlay::GenerationOptions generation;
    std::uint32_t context_tokens = 0;
    bool ignore_end = false;
    std::string load, save;  // files of sessions, or empty
};

// What was generated, and when.
struct Reply {
    std::vector<std::int32_t> tokens;
    std::string text;
    std::int32_t finish_reason = INLAY_FINISH_NONE;
    Clock::time_point start, first_token, last_token;
};

Reply generate(inlay::Session& session, bool stream) {
    Reply reply;
    reply.start = Clock::now();
    while (reply.finish_reason == INLAY_FINISH_NONE) {
        const inlay::Chunk chunk = session.next();
        if (chunk.size() > 0) {
            reply.last_token = Clock::now();
            if (reply.tokens.empty()) reply.first_token = reply.last_token;
        }
        reply.tokens.insert(reply.tokens.end(), chunk.begin(), chunk.end());
        reply.text += chunk.text();
        reply.finish_reason = chunk.finish_reason();
        if (stream) {
            print_text(chunk.text());
            flush_output();
        }
    }
    return reply;
}

// Times that no token was measured for are null.
Json report(const Reply& reply, const inlay::SessionStats& stats, const std::optional<inlay::LoadResult>& loaded) {
    Json ttft_ms, decode_tok_s;
    if (!reply.tokens.empty())
        ttft_ms = std::chrono::duration<double, std::milli>(reply.first_token - reply.start).count();
    const double seconds = std::chrono::duration<double>(reply.last_token - reply.first_token).count();
    if (reply.tokens.size() > 1 && seconds > 0) decode_tok_s = static_cast<double>(reply.tokens.size() - 1) / seconds;
    Json report = {{"tokens", reply.tokens},
                   {"text", reply.text},
                   {"prompt_tokens", stats.n_prompt_tokens},
                   {"reused_tokens", stats.n_reused_tokens},
                   {"ttft_ms", ttft_ms},
                   {"decode_tok_s", decode_tok_s},
                   {"finish", choice_name(kFinishReasons, reply.finish_reason)}};
    if (loaded) {
        report["loaded_tokens"] = loaded->n_tokens;
        report["same_numerics"] = loaded->same_numerics != 0;
    }
    return report;
}

// Tokens that the sequence may come to have.
std::uint64_t most_tokens(const RunArguments& arguments, std::size_t n_prompt, const inlay::Engine& engine) {
    const std::uint64_t n_context = arguments.context_tokens ? arguments.context_tokens : engine.info().context_tokens;
    if (n_prompt >= n_context) {
        const std::string sentence = "the context of " + std::to_string(n_context) + " tokens has no room after the " +
                                     std::to_string(n_prompt) + " tokens of the prompt";
        throw inlay::Error(INLAY_E_CONTEXT_FULL, sentence.c_str());
    }
    const std::uint64_t n_new = arguments.generation.max_new_tokens;
    return n_new && arguments.load.empty() ? std::min(n_context, n_prompt + n_new) : n_context;
}

void check_files(const RunArguments& arguments) {
    if (!arguments.prompt.given() && arguments.load.empty()) throw CLI::RequiredError("A prompt or --load");
    if (arguments.load == "-" && arguments.prompt.reads_stdin())
        throw CLI::ValidationError("--load", "stdin is taken by the prompt");
    if (arguments.save == kStdout) throw CLI::ValidationError("--save", "stdout is taken by the text");
    if (std::error_code error; std::filesystem::equivalent(arguments.model.path, arguments.save, error))
        throw CLI::ValidationError("--save", "is the model file itself");
}

// What a loaded session goes on with is no beginning of a sequence.
std::vector<std::int32_t> prompt_tokens(const RunArguments& arguments, Prompt prompt, const inlay::Engine& engine) {
    if (!arguments.prompt.given()) return {};
    if (!arguments.load.empty()) prompt.text_flags &= ~INLAY_TEXT_ADD_SPECIAL;
    return prompt.tokens(engine);
}

int run(const RunArguments& arguments, bool json) {
    check_files(arguments);
    if (!arguments.save.empty()) OutputFile::require_writable(arguments.save);
    const Prompt prompt = arguments.prompt.read();
    Interrupt interrupt;
    const inlay::Engine engine = arguments.compute.open(arguments.model, interrupt, !json);
    const std::vector<std::int32_t> tokens = prompt_tokens(arguments, prompt, engine);
    const std::uint64_t n_tokens = most_tokens(arguments, tokens.size(), engine);
    const inlay::Cache cache = arguments.cache.create(engine, n_tokens, 0);

    inlay::SessionOptions options;
    options.context_tokens = arguments.context_tokens;
    inlay::Session session(cache, options);
    interrupt.watch(session);
    std::optional<inlay::LoadResult> loaded;
    if (!arguments.load.empty()) loaded = load_session(session, arguments.load);
    inlay::GenerationOptions generation = arguments.generation;
    if (arguments.ignore_end) generation.flags |= INLAY_GENERATION_IGNORE_END;
    session.set_generation(generation);
    if (!tokens.empty()) session.append(tokens);
    if (interrupt.requested()) session.cancel();  // the append cleared an earlier request

    const Reply reply = generate(session, !json);
    if (!arguments.save.empty()) save_session(session, arguments.save);
    if (json)
        print_json(report(reply, session.stats(), loaded));
    else if (reply.text.empty() || reply.text.back() != '\n')
        print_text("\n");
    return reply.finish_reason == INLAY_FINISH_CANCELLED ? kExitInterrupted : kExitSuccess;
}

}  // namespace

Command add_run(CLI::App& app) {
    CLI::App* command = app.add_subcommand("run", "Continue a text");
    const auto arguments = std::make_shared<RunArguments>();
    arguments->generation.max_new_tokens = 128;
    arguments->model.add_to(*command);
    arguments->prompt.add_to(*command, true);
    add_number(*command, "-n", arguments->generation.max_new_tokens, {0, kMostTokens},
               "Tokens to generate; 0: up to the context");
    add_number(*command, "--temp", arguments->generation.temperature, {0, 100},
               "Temperature, at most 100; 0: the most likely token");
    add_number(*command, "--top-k", arguments->generation.top_k, {0, UINT32_MAX},
               "Keep this many of the most likely tokens; 0: all");
    add_number(*command, "--top-p", arguments->generation.top_p, {0, 1},
               "Keep the most likely tokens that together reach this probability; 0 or 1: all");
    add_number(*command, "--min-p", arguments->generation.min_p, {0, 1},
               "Keep tokens with at least this part of the best one's probability; 0: all");
    add_number(*command, "--seed", arguments->generation.seed, {0, UINT64_MAX}, "Seed of sampling");
    command->add_flag("--ignore-eos", arguments->ignore_end, "Go on after the model has ended its text");
    add_name(*command, "--load", arguments->load,
             "Go on with a session that --save wrote, by the options given now; its tokens come before those of a "
             "prompt; -: stdin");
    add_name(*command, "--save", arguments->save, "Write the session to a file when the text is done");
    add_context(*command, arguments->context_tokens);
    arguments->cache.add_to(*command);
    arguments->compute.add_to(*command);
    return {command, [arguments](bool json) { return run(*arguments, json); }};
}

}  // namespace cli
