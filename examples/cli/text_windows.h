// The windows in which a text is measured. Three definitions:
//   one context  the whole text is one window; all tokens but the first are scored (default)
//   chunks       windows of N tokens side by side. Each begins with the begin-of-sequence token, in place of its own
//                first, where the model wants that. The second half of each is scored and the rest of the text left
//                out: what llama.cpp's llama-perplexity computes
//   sliding      windows of N tokens begin S apart; each scores what no window before it scored
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "inlay/inlay.hpp"

namespace cli {

// Tokens of the text from `begin` to `end`; those from `score_from` on are scored.
struct Window {
    std::size_t begin, end, score_from;
};

struct TextWindows {
    std::size_t n_context;  // tokens of a whole window
    std::vector<Window> windows;
    std::int32_t leading;  // takes the place of each window's first token; -1: none

    std::vector<std::int32_t> tokens(const Window& window, const std::vector<std::int32_t>& text) const;
};

// CLI::ValidationError when windows would leave something out.
void check_stride(std::uint32_t stride, std::uint32_t n_context);

// `n_context` of 0 is one context, or with a `stride` the model's; `stride` of 0 none.
TextWindows text_windows(std::size_t n_tokens, std::uint32_t n_context, std::uint32_t stride,
                         const inlay::Engine& engine);

}  // namespace cli
