// inlay bench: tokens per second of prompts and of generation.
//
// Each repetition takes other random tokens and the cache never reuses a prefix, so everything measured was computed.
// Prompts go through in steps of the engine's largest size, generation one token at a time; both after `depth` tokens.
#include <algorithm>
#include <chrono>
#include <memory>
#include <random>

#include "arguments.h"
#include "bench.h"
#include "choice.h"
#include "command.h"
#include "number_option.h"
#include "report.h"

namespace cli {
namespace {

class Bench {
public:
    Bench(inlay::Session& session, const inlay::EngineInfo& info)
        : session_(session),
          n_step_(info.max_step_tokens),
          any_token_(0, static_cast<std::int32_t>(info.n_vocabulary) - 1) {}

    // Computes `n_tokens` random tokens, at most `n_step` at a time, with the logits of each step's last token.
    void compute(std::size_t n_tokens, std::size_t n_step) {
        std::vector<std::int32_t> tokens(n_tokens);
        for (std::int32_t& token : tokens) token = any_token_(random_);
        for (std::size_t start = 0; start < n_tokens; start += n_step) {
            const std::size_t n = std::min(n_step, n_tokens - start);
            session_.forward(tokens.data() + start, n, n - 1);
        }
    }

    // Tokens per second of n_tokens after what the session holds, which it is cut back to.
    double tokens_per_second(std::size_t n_tokens, std::size_t n_step) {
        const std::uint64_t depth = session_.length();
        const auto start = std::chrono::steady_clock::now();
        compute(n_tokens, n_step);
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
        session_.truncate(depth);
        return static_cast<double>(n_tokens) / elapsed.count();
    }

    std::size_t largest_step() const { return n_step_; }

private:
    inlay::Session& session_;
    std::size_t n_step_;
    std::mt19937 random_;
    std::uniform_int_distribution<std::int32_t> any_token_;
};

void check(const BenchArguments& arguments) {
    if (arguments.n_prompt == 0 && arguments.n_generate == 0)
        throw CLI::ValidationError("--prompt, --gen", "with 0 for both there is nothing to measure");
    if (arguments.n_tokens() > kMostTokens)
        throw CLI::ValidationError("--depth", "is more than a session holds together with what is measured");
    if (arguments.n_shared_prefix > arguments.n_prompt)
        throw CLI::ValidationError("--shared-prefix", "is more than --prompt");
    if (arguments.n_shared_prefix > 0 && arguments.n_parallel == 0)
        throw CLI::ValidationError("--shared-prefix", "is for --parallel");
    if (arguments.warm_prefix && arguments.n_shared_prefix == 0)
        throw CLI::ValidationError("--warm-prefix", "needs a --shared-prefix");
    if (arguments.n_parallel == 0) return;
    if (arguments.n_depth > 0) throw CLI::ValidationError("--depth", "is not for --parallel");
    if (arguments.n_prompt == 0 || arguments.n_generate < 2)
        throw CLI::ValidationError("--parallel", "needs a --prompt of 1 token and a --gen of 2 at least");
}

// The model, opened for the last time.
inlay::Engine load(const BenchArguments& arguments, Interrupt& interrupt, bool json, Loading& loading) {
    for (std::uint32_t i = 0;; ++i) {
        const auto start = std::chrono::steady_clock::now();
        inlay::Engine engine = arguments.compute.open(arguments.model, interrupt, !json);
        const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
        if (i == 0)
            loading = {elapsed.count(), resident_bytes()};
        else
            loading.reloads.push_back(elapsed.count());
        if (i == arguments.n_reloads) return engine;
    }
}

int bench(const BenchArguments& arguments, bool json) {
    check(arguments);
    Interrupt interrupt;
    Loading loading;
    const inlay::Engine engine = load(arguments, interrupt, json, loading);
    if (arguments.n_parallel > 0) return bench_parallel(arguments, engine, loading, interrupt, json);
    const inlay::EngineInfo info = engine.info();
    const inlay::Cache cache = arguments.cache.create(engine, arguments.n_tokens(), INLAY_CACHE_NO_REUSE);
    inlay::SessionOptions options;
    options.context_tokens = static_cast<std::uint32_t>(arguments.n_tokens());
    inlay::Session session(cache, options);
    interrupt.watch(session);

    Bench bench(session, info);
    std::vector<double> prefill, decode;
    for (std::uint32_t repetition = 0; repetition <= arguments.n_repetitions; ++repetition) {
        const bool measured = repetition > 0;  // the first one warms up
        session.reset();
        interrupt.check("the measurement is not complete");
        if (measured) bench.compute(arguments.n_depth, bench.largest_step());
        if (arguments.n_prompt) {
            const double rate = bench.tokens_per_second(arguments.n_prompt, bench.largest_step());
            if (measured) prefill.push_back(rate);
        }
        if (arguments.n_generate) {
            const double rate = bench.tokens_per_second(measured ? arguments.n_generate : 1, 1);
            if (measured) decode.push_back(rate);
        }
    }

    if (!json) {
        const std::string depth = " tokens at depth " + std::to_string(arguments.n_depth);
        print_summary("prefill " + std::to_string(arguments.n_prompt) + depth, prefill);
        print_summary("decode " + std::to_string(arguments.n_generate) + depth, decode);
        return kExitSuccess;
    }
    Json result = Json::object();
    add_summary(result, "prefill_tok_s", prefill);
    add_summary(result, "decode_tok_s", decode);
    result["depth"] = arguments.n_depth;
    result["reused_tokens"] = session.stats().n_reused_tokens;
    result["recomputed_tokens"] = session.stats().n_recomputed_tokens;
    add_conditions(result, arguments, info, loading);
    print_json(result);
    return kExitSuccess;
}

}  // namespace

Command add_bench(CLI::App& app) {
    CLI::App* command = app.add_subcommand("bench", "Measure tokens per second");
    const auto arguments = std::make_shared<BenchArguments>();
    arguments->model.add_to(*command);
    add_number(*command, "--prompt", arguments->n_prompt, {0, kMostTokens}, "Tokens of the prompt; 0: do not measure");
    add_number(*command, "--gen", arguments->n_generate, {0, kMostTokens}, "Tokens to generate; 0: do not measure");
    add_number(*command, "--depth", arguments->n_depth, {0, kMostTokens}, "Tokens before those measured");
    add_number(*command, "--parallel", arguments->n_parallel, {0, 4096},
               "Sessions that prompt and generate side by side; 0: one alone");
    add_number(*command, "--shared-prefix", arguments->n_shared_prefix, {0, kMostTokens},
               "Tokens with which all their prompts begin");
    command->add_flag("--warm-prefix", arguments->warm_prefix, "A session before them has computed the shared prefix");
    add_number(*command, "--reloads", arguments->n_reloads, {0, 1'000},
               "Open the model so many times more, to measure how long that takes");
    add_number(*command, "--reps", arguments->n_repetitions, {1, 1'000'000}, "Repetitions, at least 1");
    arguments->cache.add_to(*command);
    arguments->compute.add_to(*command);
    return {command, [arguments](bool json) { return bench(*arguments, json); }};
}

}  // namespace cli
