#include "text/tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "text/byte_pair_encoder.h"
#include "text/clean_spaces.h"
#include "text/pre_tokenizer.h"
#include "text/sentencepiece_encoder.h"

namespace inlay {

namespace {

// Lengths and places within a text are 32-bit numbers.
constexpr size_t kMaxTextBytes = size_t{1} << 31;

int32_t hexadecimal_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

// "<0x41>" -> 'A'; -1 for any other spelling.
int32_t spelled_byte(std::string_view text) {
    if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return -1;
    const int32_t high = hexadecimal_value(text[3]);
    const int32_t low = hexadecimal_value(text[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

std::unique_ptr<const TextEncoder> make_byte_pair_encoder(const Vocabulary& vocabulary, const StringIndex&) {
    return std::make_unique<BytePairEncoder>(vocabulary, find_pre_tokenizer(vocabulary.pre));
}

std::unique_ptr<const TextEncoder> make_sentencepiece_encoder(const Vocabulary& vocabulary,
                                                              const StringIndex& token_ids) {
    return std::make_unique<SentencePieceEncoder>(vocabulary, token_ids);
}

struct EncoderKind {
    std::string_view model;
    std::unique_ptr<const TextEncoder> (*make)(const Vocabulary& vocabulary, const StringIndex& token_ids);
};

constexpr EncoderKind kEncoderKinds[] = {{"gpt2", make_byte_pair_encoder}, {"llama", make_sentencepiece_encoder}};

const EncoderKind& find_encoder_kind(std::string_view model) {
    for (const EncoderKind& kind : kEncoderKinds) {
        if (kind.model == model) return kind;
    }
    throw Error(INLAY_E_UNSUPPORTED, "vocabularies of the kind \"" + printable(model, 64) + "\" are not supported");
}

bool is_white_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

// Frees what an assignment of an empty one would keep as capacity.
template <typename Container>
void give_up(Container& container) {
    Container empty;
    std::swap(container, empty);
}

}  // namespace

std::unique_ptr<Tokenizer> Tokenizer::create(Vocabulary vocabulary) {
    return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(vocabulary)));
}

Tokenizer::Tokenizer(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {
    const EncoderKind& kind = find_encoder_kind(vocabulary_.model);
    check();
    index_tokens();
    encoder_ = kind.make(vocabulary_, token_ids_);
    give_up(vocabulary_.merges);
    give_up(vocabulary_.scores);
    collect_special_tokens();
}

void Tokenizer::check() const {
    const size_t n = vocabulary_.tokens.size();
    if (n == 0 || n > INT32_MAX) throw Error(INLAY_E_FORMAT, "the vocabulary's list of tokens is empty or too long");
    if (vocabulary_.kinds.size() != n) {
        throw Error(INLAY_E_FORMAT, "the vocabulary has " + std::to_string(n) + " tokens but " +
                                        std::to_string(vocabulary_.kinds.size()) + " token types");
    }
    const auto check_id = [n](int32_t id, const char* name) {
        if (id < kNoToken || (id >= 0 && static_cast<size_t>(id) >= n)) {
            throw Error(INLAY_E_FORMAT, "the vocabulary's " + std::string(name) + " token is " + std::to_string(id) +
                                            ", which is not one of its " + std::to_string(n) + " tokens");
        }
    };
    check_id(vocabulary_.bos, "bos");
    check_id(vocabulary_.eos, "eos");
    check_id(vocabulary_.eot, "eot");
    check_id(vocabulary_.eom, "eom");
    check_id(vocabulary_.unk, "unk");
    check_id(vocabulary_.sep, "sep");
    check_id(vocabulary_.pad, "pad");
    check_id(vocabulary_.mask, "mask");
    for (const int32_t id : vocabulary_.end_of_generation) check_id(id, "end-of-generation");
}

void Tokenizer::index_tokens() {
    const StringTable& tokens = vocabulary_.tokens;
    token_ids_.reserve(tokens.size());
    for (size_t id = 0; id < tokens.size(); ++id) {
        const int32_t first = token_ids_.insert(tokens, static_cast<int32_t>(id));
        if (static_cast<size_t>(first) != id) {
            throw Error(INLAY_E_FORMAT, "the vocabulary's tokens " + std::to_string(first) + " and " +
                                            std::to_string(id) + " have the same text");
        }
    }
    std::sort(vocabulary_.end_of_generation.begin(), vocabulary_.end_of_generation.end());
}

void Tokenizer::collect_special_tokens() {
    for (size_t i = 0; i < n_tokens(); ++i) {
        const auto id = static_cast<int32_t>(i);
        const TokenKind kind = vocabulary_.kinds[i];
        const std::string_view text = vocabulary_.tokens[i];
        if (kind == TokenKind::kUserDefined) user_defined_tokens_.add(text, id);
        if (kind == TokenKind::kUserDefined || is_hidden(i)) special_tokens_.add(text, id);
    }
    user_defined_tokens_.finish();
    special_tokens_.finish();
}

std::vector<int32_t> Tokenizer::tokenize(std::string_view text, bool add_special, bool parse_special) const {
    if (text.size() > kMaxTextBytes)
        throw Error(INLAY_E_INVALID_ARGUMENT,
                    "text_size is " + std::to_string(text.size()) + ", above " + std::to_string(kMaxTextBytes));
    std::vector<int32_t> ids;
    if (add_special && adds_bos()) ids.push_back(vocabulary_.bos);
    const SpecialScanner& scanner = parse_special ? special_tokens_ : user_defined_tokens_;
    size_t at = 0;
    for (const SpecialScanner::Match& match : scanner.scan(text)) {
        if (match.begin > at) encoder_->encode(text.substr(at, match.begin - at), ids);
        ids.push_back(match.id);
        at = match.begin + match.length;
        if (trims_after(match.id)) {
            while (at < text.size() && is_white_space(text[at])) ++at;
        }
    }
    if (at < text.size()) encoder_->encode(text.substr(at), ids);
    if (add_special && adds_eos()) ids.push_back(vocabulary_.eos);
    return ids;
}

void Tokenizer::append_token_bytes(int32_t id, bool special, std::string& out) const {
    const size_t index = checked(id);
    if (!special && is_hidden(index)) return;
    const std::string_view spelling = vocabulary_.tokens[index];
    switch (vocabulary_.kinds[index]) {
        case TokenKind::kUnknown:
        case TokenKind::kControl:
        case TokenKind::kUserDefined:
            out.append(spelling);
            break;
        case TokenKind::kUnused:
            break;
        case TokenKind::kByte:
            if (const int32_t byte = spelled_byte(spelling); byte >= 0) {
                out.push_back(static_cast<char>(byte));
                break;
            }
            [[fallthrough]];
        case TokenKind::kNormal:
            encoder_->append_bytes(spelling, out);
            break;
    }
}

std::string Tokenizer::detokenize(std::span<const int32_t> ids, DetokenizeOptions options) const {
    std::string text;
    if (!ids.empty()) append_token_bytes(ids.front(), options.special, text);
    if (options.begins_text && encoder_->adds_space_prefix() && text.starts_with(' ')) text.erase(0, 1);
    for (const int32_t id : ids.subspan(ids.empty() ? 0 : 1)) append_token_bytes(id, options.special, text);
    if (options.clean_up_spaces && encoder_->cleans_up_spaces()) clean_up_spaces(text);
    return text;
}

size_t Tokenizer::memory_bytes() const {
    return vocabulary_.tokens.memory_bytes() + vocabulary_.kinds.capacity() * sizeof(TokenKind) +
           token_ids_.memory_bytes() + user_defined_tokens_.memory_bytes() + special_tokens_.memory_bytes() +
           encoder_->memory_bytes();
}

bool Tokenizer::is_end_of_generation(int32_t id) const {
    const auto& endings = vocabulary_.end_of_generation;
    return std::binary_search(endings.begin(), endings.end(), id);
}

size_t Tokenizer::checked(int32_t id) const {
    if (id < 0 || static_cast<size_t>(id) >= n_tokens()) {
        throw Error(INLAY_E_INVALID_ARGUMENT, "token " + std::to_string(id) + " is not one of the vocabulary's " +
                                                  std::to_string(n_tokens()) + " tokens");
    }
    return static_cast<size_t>(id);
}

// Not text: printed only when special tokens are asked for.
bool Tokenizer::is_hidden(size_t index) const {
    const TokenKind kind = vocabulary_.kinds[index];
    return kind == TokenKind::kControl || kind == TokenKind::kUnknown;
}

bool Tokenizer::trims_after(int32_t id) const {
    return std::binary_search(vocabulary_.trims_after.begin(), vocabulary_.trims_after.end(), id);
}

}  // namespace inlay
