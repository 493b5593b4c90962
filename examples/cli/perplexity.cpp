// inlay perplexity: how well a model predicts a text, in one of the windows of text_windows.h: a mean of
// -ln p(token | tokens before it in its window). With --against or --against-compute, also how far the predictions are
// from those with keys and values of another type or with activations of another kind, row by row: both are computed
// side by side, in the same way otherwise.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "arguments.h"
#include "choice.h"
#include "command.h"
#include "input_file.h"
#include "number_option.h"
#include "report.h"
#include "text_windows.h"
#include "token_losses.h"
#include "token_rows.h"

namespace cli {
namespace {

constexpr std::int32_t kNotGiven = -1;

struct PerplexityArguments {
    ModelArguments model;
    ComputeArguments compute;
    CacheArguments cache;
    std::string file;
    std::uint32_t n_context = 0;  // 0: not given, as the next
    std::uint32_t stride = 0;
    std::int32_t against = INLAY_KV_DEFAULT;  // not given
    std::int32_t against_compute = kNotGiven;

    bool compares() const { return against != INLAY_KV_DEFAULT || against_compute != kNotGiven; }
    // How the predictions are computed that are compared with.
    ComputeArguments reference_compute() const {
        ComputeArguments reference = compute;
        if (against_compute != kNotGiven) reference.compute = against_compute;
        return reference;
    }
    CacheArguments reference_cache() const {
        CacheArguments reference = cache;
        if (against != INLAY_KV_DEFAULT) reference.kv = {.both = against};
        return reference;
    }
};

// Over all scored tokens.
struct Measured {
    std::size_t n_scored = 0;
    double nll = 0;  // mean
    std::uint64_t n_reused = 0;
    std::optional<Comparison> comparison;
};

struct Sessions {
    inlay::Session tested;
    std::optional<inlay::Session> reference;
};

// `reference`: the engine that is compared with, where there is such.
Sessions create_sessions(const PerplexityArguments& arguments, const inlay::Engine& engine,
                         const std::optional<inlay::Engine>& reference, std::size_t n_tokens) {
    inlay::SessionOptions options;
    options.context_tokens = static_cast<std::uint32_t>(n_tokens);
    const auto create = [&](const inlay::Engine& of, const CacheArguments& cache) {
        return inlay::Session(cache.create(of, n_tokens, INLAY_CACHE_NO_REUSE), options);
    };
    Sessions sessions{create(engine, arguments.cache), std::nullopt};
    if (reference) sessions.reference = create(*reference, arguments.reference_cache());
    return sessions;
}

// The engine of the reference: the same one unless activations are of another kind.
std::optional<inlay::Engine> reference_engine(const PerplexityArguments& arguments, const inlay::Engine& engine,
                                              const Interrupt& interrupt, bool json) {
    if (!arguments.compares()) return std::nullopt;
    const ComputeArguments compute = arguments.reference_compute();
    if (compute.compute == arguments.compute.compute) return engine;
    return compute.open(arguments.model, interrupt, !json);
}

Measured measure(Sessions& sessions, const TextWindows& windows, const std::vector<std::int32_t>& text,
                 std::size_t n_chunk, const Interrupt& interrupt) {
    std::vector<inlay::Session*> running = {&sessions.tested};
    if (sessions.reference) running.push_back(&*sessions.reference);
    double sum = 0;
    std::size_t n_scored = 0;
    std::vector<RowComparison> compared;
    for (const Window& window : windows.windows) {
        const std::vector<std::int32_t> tokens = windows.tokens(window, text);
        for (inlay::Session* session : running) session->reset();
        interrupt.check("not all of the text was measured");
        // The row before a token predicts it, and nothing is asked of the last token's row.
        for_each_row(running, tokens.data(), tokens.size() - 1, window.score_from - window.begin - 1, n_chunk,
                     [&](std::size_t index, const std::vector<const float*>& rows, std::size_t n_vocabulary) {
                         if (running.size() == 2)
                             compared.push_back(compare_rows(rows[0], rows[1], n_vocabulary, tokens[index + 1]));
                         sum += running.size() == 2 ? compared.back().nll
                                                    : negative_log_likelihood(rows[0], n_vocabulary, tokens[index + 1]);
                         ++n_scored;
                     });
    }
    Measured measured{n_scored, sum / static_cast<double>(n_scored), sessions.tested.stats().n_reused_tokens, {}};
    if (sessions.reference) measured.comparison = summarise(compared);
    return measured;
}

Json to_json(const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
}

void add_comparison(Json& result, const PerplexityArguments& arguments, const Comparison& comparison) {
    result["against"] = arguments.reference_cache().kv.name();
    result["compute"] = choice_name(kComputeModes, arguments.compute.compute);
    result["against_compute"] = choice_name(kComputeModes, arguments.reference_compute().compute);
    result["nll_difference"] = comparison.nll_difference;
    result["nll_difference_se"] = to_json(comparison.nll_difference_se);
    result["mean_kl"] = comparison.mean_kl;
    result["mean_kl_se"] = to_json(comparison.mean_kl_se);
    result["p99_kl"] = comparison.p99_kl;
    result["max_kl"] = comparison.max_kl;
    result["top1_agreement"] = comparison.top1_agreement;
}

// What is compared: the types, and the activations where they are of two kinds.
std::string label(const PerplexityArguments& arguments, const CacheArguments& cache, const ComputeArguments& compute) {
    if (arguments.against_compute == kNotGiven) return cache.kv.name();
    return choice_name(kComputeModes, compute.compute) + " with " + cache.kv.name();
}

void print_comparison(const PerplexityArguments& arguments, const Comparison& comparison) {
    std::printf(
        "%s against %s: loss %+.6f (standard error %.6f), KL %.3g (standard error %.3g, 99th percentile %.3g), "
        "same most likely token %.2f %%\n",
        label(arguments, arguments.cache, arguments.compute).c_str(),
        label(arguments, arguments.reference_cache(), arguments.reference_compute()).c_str(), comparison.nll_difference,
        comparison.nll_difference_se.value_or(0), comparison.mean_kl, comparison.mean_kl_se.value_or(0),
        comparison.p99_kl, 100 * comparison.top1_agreement);
}

int perplexity(const PerplexityArguments& arguments, bool json) {
    if (arguments.n_context) check_stride(arguments.stride, arguments.n_context);
    const std::string bytes = read_file(arguments.file);
    Interrupt interrupt;
    const inlay::Engine engine = arguments.compute.open(arguments.model, interrupt, !json);
    const std::vector<std::int32_t> text = engine.tokenize(bytes, INLAY_TEXT_ADD_SPECIAL);
    if (text.size() < 2) throw inlay::Error(INLAY_E_INVALID_ARGUMENT, "the text has fewer than two tokens");
    const TextWindows windows = text_windows(text.size(), arguments.n_context, arguments.stride, engine);

    const std::optional<inlay::Engine> reference = reference_engine(arguments, engine, interrupt, json);
    Sessions sessions = create_sessions(arguments, engine, reference, std::min(windows.n_context, text.size()));
    interrupt.watch(sessions.tested);
    const Measured measured = measure(sessions, windows, text, chunk_for_logits(engine.info()), interrupt);
    if (json) {
        Json result = {{"nll", measured.nll},
                       {"tokens", measured.n_scored},
                       {"perplexity", std::exp(measured.nll)},
                       {"text_tokens", text.size()},
                       {"ctx", windows.n_context},
                       {"stride", arguments.stride},
                       {"windows", windows.windows.size()},
                       {"kv", arguments.cache.kv.name()},
                       {"reused_tokens", measured.n_reused}};
        if (measured.comparison) add_comparison(result, arguments, *measured.comparison);
        print_json(result);
        return kExitSuccess;
    }
    std::printf("perplexity %.4f (mean negative log-likelihood %.6f over %zu tokens)\n", std::exp(measured.nll),
                measured.nll, measured.n_scored);
    if (measured.comparison) print_comparison(arguments, *measured.comparison);
    return kExitSuccess;
}

}  // namespace

Command add_perplexity(CLI::App& app) {
    CLI::App* command = app.add_subcommand("perplexity", "Measure how well the model predicts a text");
    const auto arguments = std::make_shared<PerplexityArguments>();
    arguments->model.add_to(*command);
    add_input_file(*command, arguments->file)->required();
    add_number(*command, "--ctx", arguments->n_context, {4, kMostTokens},
               "Windows of this many tokens, second half scored (as llama.cpp); without it: one window")
        ->default_str("");
    add_number(*command, "--stride", arguments->stride, {1, kMostTokens},
               "Windows this far apart; each scores what is new in it")
        ->default_str("");
    arguments->cache.add_to(*command);
    add_choice(*command, "--against", arguments->against, kKvTypes,
               "Compare with keys and values of this type, computed beside")
        ->default_str("");
    add_choice(*command, "--against-compute", arguments->against_compute, kComputeModes,
               "Compare with activations of this kind, computed beside")
        ->default_str("");
    arguments->compute.add_to(*command);
    return {command, [arguments](bool json) { return perplexity(*arguments, json); }};
}

}  // namespace cli
