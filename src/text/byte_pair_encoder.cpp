#include "text/byte_pair_encoder.h"

#include <algorithm>
#include <bit>
#include <string>

#include "base/error.h"
#include "text/byte_alphabet.h"
#include "text/pair_merging.h"
#include "text/utf8.h"

namespace inlay {

namespace {

constexpr size_t kMaxSymbols = INT32_MAX;

uint64_t pair_key(int32_t left, int32_t right) {
    return (uint64_t{static_cast<uint32_t>(left)} << 32) | static_cast<uint32_t>(right);
}

size_t spread(uint64_t key) {
    key ^= key >> 32;
    key *= 0x9E3779B97F4A7C15u;
    return static_cast<size_t>(key ^ (key >> 29));
}

}  // namespace

struct BytePairEncoder::Workspace {
    WordSplitter splitter;
    std::vector<Symbol> symbols;  // of the word, by place
    PairMerging merging;
};

BytePairEncoder::BytePairEncoder(const Vocabulary& vocabulary, const PreTokenizer& pre_tokenizer)
    : pre_tokenizer_(pre_tokenizer) {
    const size_t n_most = vocabulary.tokens.size() + 3 * vocabulary.merges.size() + 256;
    if (n_most > kMaxSymbols) throw Error(INLAY_E_FORMAT, "the vocabulary's merges are more than can be numbered");
    add_tokens(vocabulary.tokens);
    add_bytes();
    add_merges(vocabulary.merges);
}

void BytePairEncoder::add_tokens(const StringTable& tokens) {
    n_tokens_ = static_cast<Symbol>(tokens.size());
    symbols_.reserve(tokens.size() + 256, tokens.n_bytes());
    index_.reserve(tokens.size() + 256);
    std::string bytes;
    for (Symbol id = 0; id < n_tokens_; ++id) {
        bytes.clear();
        const bool spelled = append_spelled_bytes(tokens[static_cast<size_t>(id)], bytes);
        symbols_.push_back(bytes);
        if (spelled) index_.insert(symbols_, id);
    }
}

void BytePairEncoder::add_bytes() {
    for (uint32_t byte = 0; byte < 256; ++byte) {
        const char c = static_cast<char>(byte);
        byte_symbols_[byte] = symbol_of(std::string_view(&c, 1));
    }
}

void BytePairEncoder::add_merges(const StringTable& merges) {
    merges_.resize(std::bit_ceil(std::max<size_t>(16, merges.size() * 3 / 2)));
    const size_t mask = merges_.size() - 1;
    std::string joined;
    for (size_t rank = 0; rank < merges.size(); ++rank) {
        const std::string_view merge = merges[rank];
        const size_t blank = merge.find(' ', 1);
        if (blank == std::string_view::npos) continue;
        // A part outside the byte alphabet never occurs in a word.
        joined.clear();
        if (!append_spelled_bytes(merge.substr(0, blank), joined)) continue;
        const size_t n_left = joined.size();
        if (!append_spelled_bytes(merge.substr(blank + 1), joined)) continue;
        if (n_left == 0 || n_left == joined.size()) continue;
        const std::string_view both = joined;
        const Symbol left = symbol_of(both.substr(0, n_left));
        const Symbol right = symbol_of(both.substr(n_left));
        const Symbol result = symbol_of(both);

        const uint64_t key = pair_key(left, right);
        size_t at = spread(key) & mask;
        while (merges_[at].key != kEmptyKey && merges_[at].key != key) at = (at + 1) & mask;
        if (merges_[at].key == kEmptyKey) merges_[at] = {key, {static_cast<uint32_t>(rank), result}};
    }
}

BytePairEncoder::Symbol BytePairEncoder::symbol_of(std::string_view bytes) {
    const Symbol known = index_.find(symbols_, bytes);
    if (known != StringIndex::kNone) return known;
    const auto created = static_cast<Symbol>(symbols_.size());
    symbols_.push_back(bytes);
    return index_.insert(symbols_, created);
}

const BytePairEncoder::Merge* BytePairEncoder::find_merge(Symbol left, Symbol right) const {
    const uint64_t key = pair_key(left, right);
    const size_t mask = merges_.size() - 1;
    for (size_t at = spread(key) & mask;; at = (at + 1) & mask) {
        if (merges_[at].key == key) return &merges_[at].merge;
        if (merges_[at].key == kEmptyKey) return nullptr;
    }
}

void BytePairEncoder::encode(std::string_view text, std::vector<int32_t>& ids) const {
    std::string repaired;
    if (!is_valid_utf8(text)) {
        repaired = repair_utf8(text);
        text = repaired;
    }
    Workspace workspace;
    size_t at = 0;
    for (const uint32_t length : workspace.splitter.split(pre_tokenizer_, text)) {
        encode_word(text.substr(at, length), workspace, ids);
        at += length;
    }
}

void BytePairEncoder::encode_word(std::string_view word, Workspace& workspace, std::vector<int32_t>& ids) const {
    if (pre_tokenizer_.whole_words_first) {
        const Symbol whole = index_.find(symbols_, word);
        if (whole != StringIndex::kNone && is_token(whole)) {
            ids.push_back(whole);
            return;
        }
    }
    auto& symbols = workspace.symbols;
    symbols.resize(word.size());
    for (size_t i = 0; i < word.size(); ++i) symbols[i] = byte_symbols_[static_cast<unsigned char>(word[i])];
    workspace.merging.run(
        static_cast<uint32_t>(word.size()),
        [&](uint32_t left, uint32_t right) {
            const Merge* merge = find_merge(symbols[left], symbols[right]);
            return merge == nullptr ? PairMerging::kNoRank : merge->rank;
        },
        [&](uint32_t left, uint32_t right) { symbols[left] = find_merge(symbols[left], symbols[right])->result; });
    workspace.merging.for_each_place([&](uint32_t place) { emit(symbols[place], ids); });
}

// A symbol that is no token is said byte by byte; bytes that the vocabulary lacks are lost.
void BytePairEncoder::emit(Symbol symbol, std::vector<int32_t>& ids) const {
    if (is_token(symbol)) {
        ids.push_back(symbol);
        return;
    }
    for (const char c : symbols_[static_cast<size_t>(symbol)]) {
        const Symbol byte = byte_symbols_[static_cast<unsigned char>(c)];
        if (is_token(byte)) ids.push_back(byte);
    }
}

void BytePairEncoder::append_bytes(std::string_view spelling, std::string& out) const {
    append_spelled_bytes_or_self(spelling, out);
}

}  // namespace inlay
