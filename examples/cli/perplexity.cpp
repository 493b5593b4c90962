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
#include "report.h"
#include "token_rows.h"

namespace cli {
namespace {

struct PerplexityArguments {
    ModelArguments model;
    ComputeArguments compute;
    CacheArguments cache;
    std::string file;
    std::size_t n_context = 0;
    std::size_t stride = 0;
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

int perplexity(const PerplexityArguments& arguments) {
    Interrupt interrupt;
    const inlay::Engine engine = arguments.compute.open(arguments.model, interrupt);
    const inlay::EngineInfo info = engine.info();
    const std::vector<std::int32_t> text = engine.tokenize(read_file(arguments.file), INLAY_TEXT_ADD_SPECIAL);

    const std::size_t n_context = arguments.n_context ? arguments.n_context
                                  : arguments.stride  ? info.context_tokens
                                                      : text.size();
    if (text.size() < 2) throw inlay::Error(INLAY_E_INVALID_ARGUMENT, "the text has fewer than two tokens");
    if (n_context > text.size() && !arguments.stride)
        throw inlay::Error(INLAY_E_INVALID_ARGUMENT, "the text has fewer tokens than --ctx");
    // The first token of a window is never scored, and a chunk scores its second half: smaller ones would score
    // nothing.
    if (n_context < 4) throw CLI::ValidationError("--ctx", "a window needs at least 4 tokens");
    if (arguments.stride >= n_context) throw CLI::ValidationError("--stride", "must be smaller than the window");
    const bool in_chunks = arguments.n_context != 0 && arguments.stride == 0;
    const std::vector<Window> windows = in_chunks          ? chunks(text.size(), n_context)
                                        : arguments.stride ? sliding(text.size(), n_context, arguments.stride)
                                                           : one_context(text.size());
    const std::int32_t leading = in_chunks ? leading_token(engine) : -1;

    const inlay::Cache cache = arguments.cache.create(engine, n_context, INLAY_CACHE_NO_REUSE);
    inlay::SessionOptions options;
    options.context_tokens = static_cast<std::uint32_t>(n_context);
    inlay::Session session(cache, options);
    interrupt.watch(session);

    double sum = 0;
    std::size_t n_scored = 0;
    std::vector<std::int32_t> tokens;
    for (const Window& window : windows) {
        tokens.assign(text.begin() + static_cast<std::ptrdiff_t>(window.begin),
                      text.begin() + static_cast<std::ptrdiff_t>(window.end));
        if (leading >= 0) tokens.front() = leading;
        session.reset();
        interrupt.check();
        // The row before a token predicts it, and nothing is asked of the last token's row.
        const std::size_t first_row = window.score_from - window.begin - 1;
        for_each_row(session, tokens.data(), tokens.size() - 1, first_row, chunk_for_logits(info),
                     [&](std::size_t index, const float* row, std::size_t n_vocabulary) {
                         sum += negative_log_likelihood(row, n_vocabulary, tokens[index + 1]);
                         ++n_scored;
                     });
    }
    const double nll = sum / static_cast<double>(n_scored);
    if (arguments.model.json)
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
    command->add_option("-f,--file", arguments->file, "File of text; -: stdin")->required();
    command->add_option("--ctx", arguments->n_context,
                        "Windows of this many tokens, second half scored (as llama.cpp); without it: one window");
    command->add_option("--stride", arguments->stride, "Windows this far apart; each scores what is new in it");
    arguments->cache.add_to(*command);
    arguments->compute.add_to(*command);
    return {command, [arguments] { return perplexity(*arguments); }};
}

}  // namespace cli
