#include "text/pre_tokenizer.h"

#include <algorithm>

#include "text/utf8.h"

namespace inlay {

namespace {

constexpr size_t kNoMatch = SIZE_MAX;

uint32_t ascii_lower(uint32_t c) {
    return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

// The characters of one word of the pass before: matching sees nothing outside.
struct Matcher {
    const uint32_t* code_points;
    const CharClasses* classes;
    size_t end;

    size_t contraction_length(Contraction kind, size_t at) const {
        if (kind == Contraction::kNone || at + 1 >= end || code_points[at] != '\'') return 0;
        const auto letter = [&](size_t i) {
            const uint32_t c = i < end ? code_points[i] : 0;
            return kind == Contraction::kAnyCase ? ascii_lower(c) : c;
        };
        const uint32_t first = letter(at + 1);
        const uint32_t second = letter(at + 2);
        if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
        if (((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l')) return 3;
        return 0;
    }

    bool accepts_end(const Pattern& pattern, size_t at) const {
        return !pattern.before_space_or_end || at == end || (classes[at] & char_class::kSpace) != 0;
    }

    // Where the match of items[i..] from `at` ends. Recursion is as deep as a pattern has items.
    size_t match_items(const Pattern& pattern, uint32_t i, size_t at) const {
        if (i == pattern.n_items) {
            const size_t stop = at + contraction_length(pattern.optional_suffix, at);
            return accepts_end(pattern, stop) ? stop : kNoMatch;
        }
        const PatternItem& item = pattern.items[i];
        const size_t limit = std::min<size_t>(end, at + item.most);
        size_t stop = at;
        while (stop < limit && (classes[stop] & item.any_of) != 0 && (classes[stop] & item.none_of) == 0) ++stop;
        for (;; --stop) {
            if (stop < at + item.least) return kNoMatch;
            const size_t match = match_items(pattern, i + 1, stop);
            if (match != kNoMatch) return match;
            if (stop == at) return kNoMatch;
        }
    }

    // Length of the first pattern's match at `at`, 0 if none matches.
    size_t match(std::span<const Pattern> patterns, size_t at) const {
        for (const Pattern& pattern : patterns) {
            if (pattern.n_items == 0) {
                if (const size_t length = contraction_length(pattern.contraction, at)) return length;
                continue;
            }
            const size_t stop = match_items(pattern, 0, at);
            if (stop != kNoMatch && stop > at) return stop - at;
        }
        return 0;
    }
};

}  // namespace

const std::vector<uint32_t>& WordSplitter::split(const PreTokenizer& pre_tokenizer, std::string_view utf8) {
    read(utf8);
    ends_.clear();
    if (!code_points_.empty()) ends_.push_back(static_cast<uint32_t>(code_points_.size()));
    for (const PreTokenizerPass& pass : pre_tokenizer.passes) run(pass);

    // From ends in characters to lengths in bytes.
    size_t character = 0;
    size_t byte = 0;
    for (uint32_t& end : ends_) {
        const size_t begin_byte = byte;
        for (; character < end; ++character) byte += decode_code_point(utf8, byte).length;
        end = static_cast<uint32_t>(byte - begin_byte);
    }
    return ends_;
}

void WordSplitter::read(std::string_view utf8) {
    code_points_.clear();
    classes_.clear();
    for (size_t at = 0; at < utf8.size();) {
        const CodePoint point = decode_code_point(utf8, at);
        code_points_.push_back(point.value);
        classes_.push_back(char_classes(point.value));
        at += point.length;
    }
}

void WordSplitter::run(const PreTokenizerPass& pass) {
    next_ends_.clear();
    const auto cut = [&](size_t at) {
        if (at > (next_ends_.empty() ? 0 : next_ends_.back())) next_ends_.push_back(static_cast<uint32_t>(at));
    };
    size_t begin = 0;
    for (const size_t end : ends_) {
        if (pass.is_trailing_space) {
            size_t spaces = end;
            while (spaces > begin && (classes_[spaces - 1] & char_class::kSpace) != 0) --spaces;
            cut(spaces);
        }
        const Matcher matcher{code_points_.data(), classes_.data(), end};
        for (size_t at = begin; at < end && !pass.patterns.empty();) {
            const size_t length = matcher.match(pass.patterns, at);
            if (length == 0) {
                ++at;
                continue;
            }
            cut(at);
            at += length;
            cut(at);
        }
        cut(end);
        begin = end;
    }
    ends_.swap(next_ends_);
}

}  // namespace inlay
