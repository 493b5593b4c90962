// inlay run: continues a text.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

#include "arguments.h"
#include "choice.h"
#include "command.h"
#include "report.h"

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
            std::fflush(stdout);
        }
    }
    return reply;
}

// Times that no token was measured for are null.
Json report(const Reply& reply, const inlay::SessionStats& stats) {
    Json ttft_ms, decode_tok_s;
    if (!reply.tokens.empty())
        ttft_ms = std::chrono::duration<double, std::milli>(reply.first_token - reply.start).count();
    const double seconds = std::chrono::duration<double>(reply.last_token - reply.first_token).count();
    if (reply.tokens.size() > 1 && seconds > 0) decode_tok_s = static_cast<double>(reply.tokens.size() - 1) / seconds;
    return {{"tokens", reply.tokens},
            {"text", reply.text},
            {"prompt_tokens", stats.n_prompt_tokens},
            {"reused_tokens", stats.n_reused_tokens},
            {"ttft_ms", ttft_ms},
            {"decode_tok_s", decode_tok_s},
            {"finish", choice_name(kFinishReasons, reply.finish_reason)}};
}

int run(const RunArguments& arguments) {
    Interrupt interrupt;
    const inlay::Engine engine = arguments.compute.open(arguments.model, interrupt);
    const std::vector<std::int32_t> prompt = arguments.prompt.tokens(engine);

    // The cache has room for this one sequence.
    std::uint64_t n_tokens = arguments.context_tokens ? arguments.context_tokens : engine.info().context_tokens;
    const std::uint64_t n_new = arguments.generation.max_new_tokens;
    if (n_new != 0) n_tokens = std::min(n_tokens, prompt.size() + n_new);
    const inlay::Cache cache = arguments.cache.create(engine, n_tokens, 0);

    inlay::SessionOptions options;
    options.context_tokens = arguments.context_tokens;
    inlay::Session session(cache, options);
    interrupt.watch(session);
    inlay::GenerationOptions generation = arguments.generation;
    if (arguments.ignore_end) generation.flags |= INLAY_GENERATION_IGNORE_END;
    session.set_generation(generation);
    session.append(prompt);
    if (interrupt.requested()) session.cancel();  // the append cleared an earlier request

    const bool json = arguments.model.json;
    const Reply reply = generate(session, !json);
    if (json)
        print_json(report(reply, session.stats()));
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
    arguments->prompt.add_to(*command);
    command->add_option("-n", arguments->generation.max_new_tokens, "Tokens to generate; 0: up to the context")
        ->capture_default_str();
    command->add_option("--temp", arguments->generation.temperature, "Temperature; 0: the most likely token")
        ->capture_default_str();
    command->add_option("--top-k", arguments->generation.top_k, "Keep this many of the likeliest tokens; 0: all")
        ->capture_default_str();
    command->add_option("--top-p", arguments->generation.top_p, "Keep the likeliest up to this probability; 0: all")
        ->capture_default_str();
    command
        ->add_option("--min-p", arguments->generation.min_p, "Keep those with this part of the best one's probability")
        ->capture_default_str();
    command->add_option("--seed", arguments->generation.seed, "Seed of sampling")->capture_default_str();
    command->add_flag("--ignore-eos", arguments->ignore_end, "Go on after the model has ended its text");
    command->add_option("--ctx", arguments->context_tokens, "Most tokens of the sequence; 0: the model's context")
        ->capture_default_str();
    arguments->cache.add_to(*command);
    arguments->compute.add_to(*command);
    return {command, [arguments] { return run(*arguments); }};
}

}  // namespace cli
