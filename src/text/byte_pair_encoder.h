// Byte-level byte-pair encoding: a word begins as one symbol per byte, and of all neighbours the pair that stands first
// in the vocabulary's list of merges is joined, until none is left that the list names.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/pre_tokenizer.h"
#include "text/string_index.h"
#include "text/string_table.h"
#include "text/text_encoder.h"
#include "text/vocabulary.h"

namespace inlay {

class BytePairEncoder : public TextEncoder {
public:
    BytePairEncoder(const Vocabulary& vocabulary, const PreTokenizer& pre_tokenizer);

    void encode(std::string_view text, std::vector<int32_t>& ids) const override;
    void append_bytes(std::string_view spelling, std::string& out) const override;
    bool cleans_up_spaces() const override { return pre_tokenizer_.clean_up_spaces; }
    size_t memory_bytes() const override {
        return symbols_.memory_bytes() + index_.memory_bytes() + merges_.capacity() * sizeof(MergeSlot);
    }

private:
    // A symbol is a string of bytes. Tokens are symbols of the same number; the list of merges may name others, which
    // come after them: they can be joined further but are not tokens.
    using Symbol = int32_t;

    struct Merge {
        uint32_t rank;  // place in the list
        Symbol result;
    };
    struct MergeSlot {
        uint64_t key = kEmptyKey;  // left << 32 | right
        Merge merge = {};
    };
    static constexpr uint64_t kEmptyKey = UINT64_MAX;

    struct Workspace;  // buffers of one call

    void add_tokens(const StringTable& tokens);
    void add_bytes();
    void add_merges(const StringTable& merges);
    Symbol symbol_of(std::string_view bytes);
    const Merge* find_merge(Symbol left, Symbol right) const;

    void encode_word(std::string_view word, Workspace& workspace, std::vector<int32_t>& ids) const;
    void emit(Symbol symbol, std::vector<int32_t>& ids) const;
    bool is_token(Symbol symbol) const { return symbol < n_tokens_; }

    const PreTokenizer& pre_tokenizer_;
    Symbol n_tokens_ = 0;
    StringTable symbols_;  // the bytes of each; empty for tokens that no text can spell
    StringIndex index_;
    std::array<Symbol, 256> byte_symbols_ = {};
    std::vector<MergeSlot> merges_;  // open addressing, a power of two
};

}  // namespace inlay
