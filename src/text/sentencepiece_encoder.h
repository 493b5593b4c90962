// SentencePiece's byte-pair model: a space is written U+2581 and is a letter like any other, a text begins as one
// symbol per character, and of all neighbours the pair that makes the token with the highest score is joined. A
// character without a token is said by byte tokens.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/string_index.h"
#include "text/string_table.h"
#include "text/text_encoder.h"
#include "text/vocabulary.h"

namespace inlay {

class SentencePieceEncoder : public TextEncoder {
public:
    // `vocabulary.tokens` and `token_ids`, their index, must outlive the encoder. INLAY_E_FORMAT for scores that are no
    // numbers or not one a token.
    SentencePieceEncoder(const Vocabulary& vocabulary, const StringIndex& token_ids);

    void encode(std::string_view text, std::vector<int32_t>& ids) const override;
    void append_bytes(std::string_view spelling, std::string& out) const override;
    bool adds_space_prefix() const override { return add_space_prefix_; }
    size_t memory_bytes() const override { return ranks_.capacity() * sizeof(uint32_t); }

private:
    void rank_tokens(const Vocabulary& vocabulary);
    void find_byte_tokens();
    int32_t find_text_token(std::string_view text) const;
    uint32_t rank_of(std::string_view text) const;
    void emit(std::string_view symbol, std::vector<int32_t>& ids) const;

    const StringTable& tokens_;
    const StringIndex& token_ids_;
    std::vector<uint32_t> ranks_;  // [n_tokens] the higher the score, the less; none for tokens that are not text
    size_t longest_ = 0;           // bytes of the longest token that is text
    std::array<int32_t, 256> byte_tokens_ = {};
    int32_t unk_ = kNoToken;
    bool add_space_prefix_ = false;
};

}  // namespace inlay
