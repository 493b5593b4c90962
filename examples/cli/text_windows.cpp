#include "text_windows.h"

#include <algorithm>
#include <string>

#include <CLI/CLI.hpp>

namespace cli {
namespace {

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

// The begin-of-sequence token when the model puts it before a text, else -1.
std::int32_t leading_token(const inlay::Engine& engine) {
    const std::vector<std::int32_t> added = engine.tokenize("", INLAY_TEXT_ADD_SPECIAL);
    const std::int32_t bos = engine.special_token(INLAY_SPECIAL_BOS);
    return !added.empty() && added.front() == bos ? bos : -1;
}

}  // namespace

std::vector<std::int32_t> TextWindows::tokens(const Window& window, const std::vector<std::int32_t>& text) const {
    std::vector<std::int32_t> tokens(text.begin() + static_cast<std::ptrdiff_t>(window.begin),
                                     text.begin() + static_cast<std::ptrdiff_t>(window.end));
    if (leading >= 0) tokens.front() = leading;
    return tokens;
}

void check_stride(std::uint32_t stride, std::uint32_t n_context) {
    if (stride >= n_context)
        throw CLI::ValidationError("--stride", "must be smaller than the window of " + std::to_string(n_context));
}

TextWindows text_windows(std::size_t n_tokens, std::uint32_t n_context, std::uint32_t stride,
                         const inlay::Engine& engine) {
    if (stride) {
        const std::uint32_t n_window = n_context ? n_context : engine.info().context_tokens;
        check_stride(stride, n_window);
        return {n_window, sliding(n_tokens, n_window, stride), -1};
    }
    if (n_context) {
        if (n_context > n_tokens) throw inlay::Error(INLAY_E_INVALID_ARGUMENT, "the text has fewer tokens than --ctx");
        return {n_context, chunks(n_tokens, n_context), leading_token(engine)};
    }
    return {n_tokens, {{0, n_tokens, 1}}, -1};
}

}  // namespace cli
