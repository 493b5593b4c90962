#include "text/sentencepiece_encoder.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "text/pair_merging.h"

namespace inlay {

namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581

// A symbol is a stretch of the escaped text.
struct Symbol {
    size_t begin;
    size_t length;
};

// Ascending with falling scores. Read as whole numbers, floats of one sign are ordered like their values.
uint32_t rank_of_score(float score) {
    const auto bits = std::bit_cast<uint32_t>(score + 0.0f);  // makes -0 a 0
    return bits & 0x80000000u ? bits : ~(bits | 0x80000000u);
}

// By the first byte alone, as SentencePiece does it: behind a broken character the next ones belong to it.
size_t character_length(char first) {
    const auto byte = static_cast<unsigned char>(first);
    if (byte < 0xC0) return 1;
    if (byte < 0xE0) return 2;
    return byte < 0xF0 ? 3 : 4;
}

std::string escape_spaces(std::string_view text, bool add_space_prefix) {
    const auto n_spaces = static_cast<size_t>(std::count(text.begin(), text.end(), ' '));
    std::string escaped;
    escaped.reserve(text.size() + kSpace.size() * (n_spaces + 1));
    if (add_space_prefix) escaped += kSpace;
    for (const char c : text) {
        if (c == ' ')
            escaped += kSpace;
        else
            escaped.push_back(c);
    }
    return escaped;
}

std::vector<Symbol> split_characters(std::string_view text) {
    std::vector<Symbol> symbols;
    symbols.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
        const size_t length = std::min(character_length(text[at]), text.size() - at);
        symbols.push_back({at, length});
        at += length;
    }
    return symbols;
}

// Control tokens must not come out of what a user typed, unused ones print nothing, and byte tokens have no spelling of
// their own in a text.
bool is_text(TokenKind kind) {
    return kind == TokenKind::kNormal || kind == TokenKind::kUserDefined;
}

}  // namespace

SentencePieceEncoder::SentencePieceEncoder(const Vocabulary& vocabulary, const StringIndex& token_ids)
    : tokens_(vocabulary.tokens),
      token_ids_(token_ids),
      unk_(vocabulary.unk),
      add_space_prefix_(vocabulary.add_space_prefix) {
    rank_tokens(vocabulary);
    find_byte_tokens();
}

void SentencePieceEncoder::rank_tokens(const Vocabulary& vocabulary) {
    const size_t n = tokens_.size();
    if (vocabulary.scores.size() != n) {
        throw Error(INLAY_E_FORMAT, "the vocabulary has " + std::to_string(n) + " tokens but " +
                                        std::to_string(vocabulary.scores.size()) + " scores");
    }
    ranks_.assign(n, PairMerging::kNoRank);
    for (size_t id = 0; id < n; ++id) {
        if (!is_text(vocabulary.kinds[id])) continue;
        if (std::isnan(vocabulary.scores[id])) {
            throw Error(INLAY_E_FORMAT, "the vocabulary's score of token " + std::to_string(id) + " is not a number");
        }
        ranks_[id] = rank_of_score(vocabulary.scores[id]);
        longest_ = std::max(longest_, tokens_[id].size());
    }
}

void SentencePieceEncoder::find_byte_tokens() {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    for (size_t byte = 0; byte < 256; ++byte) {
        const char spelling[] = {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15], '>'};
        byte_tokens_[byte] = token_ids_.find(tokens_, std::string_view(spelling, sizeof spelling));
        if (byte_tokens_[byte] != kNoToken) continue;
        const char plain = static_cast<char>(byte);
        byte_tokens_[byte] = find_text_token(std::string_view(&plain, 1));
    }
}

void SentencePieceEncoder::encode(std::string_view text, std::vector<int32_t>& ids) const {
    const std::string escaped = escape_spaces(text, add_space_prefix_);
    const std::string_view all = escaped;
    std::vector<Symbol> symbols = split_characters(all);
    PairMerging merging;
    merging.run(
        static_cast<uint32_t>(symbols.size()),
        [&](uint32_t left, uint32_t right) {
            return rank_of(all.substr(symbols[left].begin, symbols[left].length + symbols[right].length));
        },
        [&](uint32_t left, uint32_t right) { symbols[left].length += symbols[right].length; });
    merging.for_each_place([&](uint32_t place) { emit(all.substr(symbols[place].begin, symbols[place].length), ids); });
}

int32_t SentencePieceEncoder::find_text_token(std::string_view text) const {
    if (text.size() > longest_) return kNoToken;
    const int32_t id = token_ids_.find(tokens_, text);
    return id != kNoToken && ranks_[static_cast<size_t>(id)] != PairMerging::kNoRank ? id : kNoToken;
}

uint32_t SentencePieceEncoder::rank_of(std::string_view text) const {
    const int32_t id = find_text_token(text);
    return id == kNoToken ? PairMerging::kNoRank : ranks_[static_cast<size_t>(id)];
}

// A symbol that is no token is a single character. Where the vocabulary lacks one of its bytes it is unknown as a
// whole, and lost if there is no token for the unknown either.
void SentencePieceEncoder::emit(std::string_view symbol, std::vector<int32_t>& ids) const {
    const int32_t whole = find_text_token(symbol);
    if (whole != kNoToken) {
        ids.push_back(whole);
        return;
    }
    const auto byte_token = [this](char c) { return byte_tokens_[static_cast<unsigned char>(c)]; };
    if (std::all_of(symbol.begin(), symbol.end(), [&](char c) { return byte_token(c) != kNoToken; })) {
        for (const char c : symbol) ids.push_back(byte_token(c));
    } else if (unk_ != kNoToken) {
        ids.push_back(unk_);
    }
}

void SentencePieceEncoder::append_bytes(std::string_view spelling, std::string& out) const {
    for (size_t at = 0; at < spelling.size();) {
        const bool is_space = spelling.substr(at, kSpace.size()) == kSpace;
        out.push_back(is_space ? ' ' : spelling[at]);
        at += is_space ? kSpace.size() : 1;
    }
}

}  // namespace inlay
