#include "text/clean_spaces.h"

#include <string_view>

namespace inlay {

namespace {

// Each rule reads what the one before left.

void drop_before_punctuation(std::string& text) {
    size_t kept = 0;
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const bool punctuation = c == '?' || c == '!' || c == '.' || c == ',';
        if (punctuation && kept > 0 && text[kept - 1] == ' ') --kept;
        text[kept++] = c;
    }
    text.resize(kept);
}

void drop_around_apostrophe(std::string& text) {
    std::string kept;
    kept.reserve(text.size());
    for (size_t i = 0; i < text.size(); ++i) {
        // A space that one apostrophe has dropped is not there for the next.
        const bool after_space = !kept.empty() && kept.back() == ' ';
        const bool alone = text[i] == '\'' && after_space && i + 1 < text.size() && text[i + 1] == ' ';
        if (alone) kept.pop_back();
        kept.push_back(text[i]);
        if (alone) ++i;
    }
    text = std::move(kept);
}

void drop_before_contraction(std::string& text) {
    std::string kept;
    kept.reserve(text.size());
    const auto follows = [&](size_t at, std::string_view suffix) {
        return text.compare(at, suffix.size(), suffix) == 0;
    };
    for (size_t i = 0; i < text.size(); ++i) {
        const bool contraction =
            text[i] == '\'' && i > 0 && text[i - 1] == ' ' &&
            (follows(i + 1, "s") || follows(i + 1, "m") || follows(i + 1, "re") || follows(i + 1, "ve"));
        if (contraction) kept.pop_back();
        kept.push_back(text[i]);
    }
    text = std::move(kept);
}

}  // namespace

void clean_up_spaces(std::string& text) {
    drop_before_punctuation(text);
    drop_around_apostrophe(text);
    drop_before_contraction(text);
}

}  // namespace inlay
