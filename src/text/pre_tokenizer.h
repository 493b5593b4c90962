// Before byte pairs are merged a text is cut into words, and each published vocabulary cuts in its own way. A way is
// data: passes of patterns over characters. One scanner runs them all, in linear time and with a bounded stack, which
// the regular expressions that these patterns come from do not promise in any common engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "text/char_class.h"

namespace inlay {

// Between `least` and `most` characters of a set, as many as possible.
struct PatternItem {
    CharClasses any_of = 0;
    CharClasses none_of = 0;
    uint32_t least = 1;
    uint32_t most = 1;
};

enum class Contraction : uint8_t { kNone, kExact, kAnyCase };  // 's 't 're 've 'm 'll 'd

// A sequence of items, tried from the longest reading of each to the shortest.
struct Pattern {
    static constexpr size_t kMaxItems = 3;
    PatternItem items[kMaxItems] = {};
    uint32_t n_items = 0;
    Contraction contraction = Contraction::kNone;      // the whole pattern, when there are no items
    Contraction optional_suffix = Contraction::kNone;  // taken if it is there
    bool before_space_or_end = false;                  // no non-space may follow
};

// Cuts the words of the pass before: the first pattern that matches at a place makes a word; characters that none
// matches gather into words of their own.
struct PreTokenizerPass {
    std::span<const Pattern> patterns;
    bool is_trailing_space = false;  // no patterns: the spaces at the end of a word become a word
};

// A way to cut, and what else a vocabulary that names it implies.
struct PreTokenizer {
    std::string_view names;  // separated by blanks
    std::span<const PreTokenizerPass> passes;
    bool whole_words_first = false;  // a word that is a token is taken without merging
    bool clean_up_spaces = false;    // detokenised text drops spaces before punctuation
    bool add_bos = false;            // unless the file says otherwise
};

// The way called `name` in model files; empty means "default". INLAY_E_UNSUPPORTED for an unknown name.
const PreTokenizer& find_pre_tokenizer(std::string_view name);

// Runs a pre-tokenizer; keeps its buffers from text to text.
class WordSplitter {
public:
    // Lengths in bytes of the words of `utf8`, in order; they add up to its size. At most 2^31 bytes.
    // The result is valid until the next call.
    const std::vector<uint32_t>& split(const PreTokenizer& pre_tokenizer, std::string_view utf8);

private:
    void read(std::string_view utf8);
    void run(const PreTokenizerPass& pass);

    std::vector<uint32_t> code_points_;
    std::vector<CharClasses> classes_;
    std::vector<uint32_t> ends_;  // of words, in characters; in bytes on return from split
    std::vector<uint32_t> next_ends_;
};

}  // namespace inlay
