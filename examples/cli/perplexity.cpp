// inlay perplexity: how well a model predicts a text.
//
// Three definitions, all a mean of -ln p(token | tokens before it in its window):
//   one context  the whole text is one window; all tokens but the first are scored (default)
//   chunks       --ctx N: windows of N tokens side by side. Each begins with the begin-of-sequence token, in place of
//                its own first, where the model wants that. The second half of each is scored and the rest of the text
//                left out: what llama.cpp's llama-perplexity computes
//   sliding      --ctx N --stride S: windows of N tokens begin S apart; each scores what no window before it scored
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "arguments.h"
#include "command.h"
#include "input_file.h"
#include "number_option.h"
#include "report.h"
#include "token_rows.h"

namespace cli {
namespace {

struct PerplexityArguments {
    ModelArguments model;
    ComputeArguments compute;
    CacheArguments cache;
    std::string file;
    std::uint32_t n_context = 0;  // 0: not given, as the next
    std::uint32_t stride = 0;
};

// Tokens of the text from `begin` to `end`; those from `score_from` on are scored.
struct Window {
    std::size_t begin, end, score_from;
};

std::vector<Window> one_context(std::size_t n_tokens) {
    return {{0, n_tokens, 1}};
}

std::vector<Window> chunks(std::size_t n_tokens, std::size_t n_context) {
    std::vector<Window> windows;
    for (std::size_t begin = 0; begin + n_context <= n_tokens; begin += n_context)
        windows.push_back({begin, begin + n_context, begin + n_context / 2 + 1});
    return windows;
}

std::vector<Window> sliding(std::size_t n_tokens, std::size_t n_context, std::size_t stride) {
    std::vector<Window> windows;
    std::size_t scored = 1;
    for (std::size_t begin = 0; scored < n_tokens; begin += stride) {
        const std::size_t end = std::min(begin + n_context, n_tokens);
        windows.push_back({begin, end, scored});
        scored = end;
    }
    return windows;
}

// -ln of the softmax of `logits` [n] at `token`.
double negative_log_likelihood(const float* logits, std::size_t n, std::int32_t token) {
    const double maximum = *std::max_element(logits, logits + n);
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += std::exp(logits[i] - maximum);
    return maximum + std::log(sum) - logits[static_cast<std::size_t>(token)];
}

// The begin-of-sequence token when the model puts it before a text, else -1.
std::int32_t leading_token(const inlay::Engine& engine) {
    const std::vector<std::int32_t> added = engine.tokenize("", INLAY_TEXT_ADD_SPECIAL);
    const std::int32_t bos = engine.special_token(INLAY_SPECIAL_BOS);
    return !added.empty() && added.front() == bos ? bos : -1;
}

// The windows of a text, by the definition that was asked for.
struct Plan {
    std::size_t n_context;  // tokens of a whole window
    std::vector<Window> windows;
    std::int32_t leading;  // takes the place of each window's first token; -1: none
};

void check_stride(std::uint32_t stride, std::uint32_t n_context) {
    if (stride >= n_context)
        throw CLI::ValidationError("--stride", "must be smaller than the window of " + std::to_string(n_context));
}

Plan plan(const PerplexityArguments& arguments, std::size_t n_tokens, const inlay::Engine& engine) {
    if (arguments.stride) {
        const std::uint32_t n_context = arguments.n_context ? arguments.n_context : engine.info().context_tokens;
        check_stride(arguments.stride, n_context);
        return {n_context, sliding(n_tokens, n_context, arguments.stride), -1};
    }
    if (arguments.n_context) {
        if (arguments.n_context > n_tokens)
            throw inlay::Error(INLAY_E_INVALID_ARGUMENT, "the text has fewer tokens than --ctx");
        return {arguments.n_context, chunks(n_tokens, arguments.n_context), leading_token(engine)};
    }
    return {n_tokens, one_context(n_tokens), -1};
}

// The sum of -ln p over the scored tokens of a window, which the session computes from its beginning.
double score(inlay::Session& session, const std::vector<std::int32_t>& tokens, std::size_t score_from,
             std::size_t n_chunk) {
    double sum = 0;
    // The row before a token predicts it, and nothing is asked of the last token's row.
    for_each_row(session, tokens.data(), tokens.size() - 1, score_from - 1, n_chunk,
                 [&](std::size_t index, const float* row, std::size_t n_vocabulary) {
                     sum += negative_log_likelihood(row, n_vocabulary, tokens[index + 1]);
                 });
    return sum;
}

int perplexity(const PerplexityArguments& arguments, bool json) {
    if (arguments.n_context) check_stride(arguments.stride, arguments.n_context);
    const std::string bytes = read_file(arguments.file);
    Interrupt interrupt;
    const inlay::Engine engine = arguments.compute.open(arguments.model, interrupt, !json);
    const std::vector<std::int32_t> text = engine.tokenize(bytes, INLAY_TEXT_ADD_SPECIAL);
    if (text.size() < 2) throw inlay::Error(INLAY_E_INVALID_ARGUMENT, "the text has fewer than two tokens");
    const auto [n_context, windows, leading] = plan(arguments, text.size(), engine);

    const std::size_t n_longest = std::min(n_context, text.size());
    const inlay::Cache cache = arguments.cache.create(engine, n_longest, INLAY_CACHE_NO_REUSE);
    inlay::SessionOptions options;
    options.context_tokens = static_cast<std::uint32_t>(n_longest);
    inlay::Session session(cache, options);
    interrupt.watch(session);

    const std::size_t n_chunk = chunk_for_logits(engine.info());
    double sum = 0;
    std::size_t n_scored = 0;
    for (const Window& window : windows) {
        std::vector<std::int32_t> tokens(text.begin() + static_cast<std::ptrdiff_t>(window.begin),
                                         text.begin() + static_cast<std::ptrdiff_t>(window.end));
        if (leading >= 0) tokens.front() = leading;
        session.reset();
        interrupt.check("not all of the text was measured");
        sum += score(session, tokens, window.score_from - window.begin, n_chunk);
        n_scored += window.end - window.score_from;
    }
    const double nll = sum / static_cast<double>(n_scored);
    if (json)
        print_json({{"nll", nll},
                    {"tokens", n_scored},
                    {"perplexity", std::exp(nll)},
                    {"text_tokens", text.size()},
                    {"ctx", n_context},
                    {"stride", arguments.stride},
                    {"windows", windows.size()},
                    {"reused_tokens", session.stats().n_reused_tokens}});
    else
        std::printf("perplexity %.4f (mean negative log-likelihood %.6f over %zu tokens)\n", std::exp(nll), nll,
                    n_scored);
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
    arguments->compute.add_to(*command);
    return {command, [arguments](bool json) { return perplexity(*arguments, json); }};
}

}  // namespace cli
