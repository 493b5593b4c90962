// Text to token ids and back, for one vocabulary. Immutable once made; used from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/special_scanner.h"
#include "text/string_index.h"
#include "text/text_encoder.h"
#include "text/vocabulary.h"

namespace inlay {

// How a sequence of ids becomes text.
struct DetokenizeOptions {
    bool special = false;          // control and unknown tokens print their names instead of nothing
    bool clean_up_spaces = false;  // where the vocabulary asks for it; the text may then differ from what was tokenized
    bool begins_text = false;      // the space that `tokenize` puts before a text is dropped again
};

class Tokenizer {
public:
    // Throws INLAY_E_UNSUPPORTED for a kind of vocabulary that is not known, INLAY_E_FORMAT for one that contradicts
    // itself.
    static std::unique_ptr<Tokenizer> create(Vocabulary vocabulary);
    Tokenizer(const Tokenizer&) = delete;  // the encoder refers to the vocabulary
    Tokenizer& operator=(const Tokenizer&) = delete;

    // Any bytes; what is no UTF-8 is said as well as the vocabulary can. `add_special` puts the tokens around the text
    // that the vocabulary asks for. Without `parse_special` the names of control tokens are text like any other.
    std::vector<int32_t> tokenize(std::string_view text, bool add_special, bool parse_special) const;

    // Appends the bytes by which a token continues a text: a token may end in the middle of a code point.
    // INLAY_E_INVALID_ARGUMENT for an id that the vocabulary does not have.
    void append_token_bytes(int32_t id, bool special, std::string& out) const;
    std::string detokenize(std::span<const int32_t> ids, DetokenizeOptions options = {}) const;

    size_t n_tokens() const { return vocabulary_.tokens.size(); }
    // As the vocabulary spells it.
    std::string_view token_text(int32_t id) const { return vocabulary_.tokens[checked(id)]; }
    TokenKind kind(int32_t id) const { return vocabulary_.kinds[checked(id)]; }
    bool is_end_of_generation(int32_t id) const;
    // The token spelled so, kNoToken if there is none.
    int32_t find_token(std::string_view spelling) const { return token_ids_.find(vocabulary_.tokens, spelling); }

    int32_t bos() const { return vocabulary_.bos; }
    int32_t eos() const { return vocabulary_.eos; }
    int32_t eot() const { return vocabulary_.eot; }
    int32_t unk() const { return vocabulary_.unk; }
    int32_t pad() const { return vocabulary_.pad; }
    bool adds_bos() const { return vocabulary_.add_bos && vocabulary_.bos != kNoToken; }
    bool adds_eos() const { return vocabulary_.add_eos && vocabulary_.eos != kNoToken; }
    // What the vocabulary and all that was built on it take.
    size_t memory_bytes() const;
    // The special ids by name, and the list of ending tokens. Its merges and scores are gone.
    const Vocabulary& vocabulary() const { return vocabulary_; }

private:
    explicit Tokenizer(Vocabulary vocabulary);

    void check() const;
    void index_tokens();
    void collect_special_tokens();
    size_t checked(int32_t id) const;
    bool is_hidden(size_t index) const;
    bool trims_after(int32_t id) const;

    Vocabulary vocabulary_;
    StringIndex token_ids_;               // of vocabulary_.tokens
    SpecialScanner user_defined_tokens_;  // matched in any text
    SpecialScanner special_tokens_;       // matched when special tokens are parsed: these and the user-defined
    std::unique_ptr<const TextEncoder> encoder_;
};

}  // namespace inlay
