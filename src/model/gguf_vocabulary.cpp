#include "model/gguf_vocabulary.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "text/pre_tokenizer.h"
#include "text/special_tokens.h"

namespace inlay {

namespace {

constexpr const char* kTokens = "tokenizer.ggml.tokens";
constexpr const char* kTokenTypes = "tokenizer.ggml.token_type";
constexpr const char* kMerges = "tokenizer.ggml.merges";
constexpr const char* kScores = "tokenizer.ggml.scores";

struct SpecialKey {
    const char* key;
    int32_t Vocabulary::*id;
};

// The last three are old names.
constexpr SpecialKey kSpecialKeys[] = {
    {"tokenizer.ggml.bos_token_id", &Vocabulary::bos},
    {"tokenizer.ggml.eos_token_id", &Vocabulary::eos},
    {"tokenizer.ggml.eot_token_id", &Vocabulary::eot},
    {"tokenizer.ggml.eom_token_id", &Vocabulary::eom},
    {"tokenizer.ggml.unknown_token_id", &Vocabulary::unk},
    {"tokenizer.ggml.seperator_token_id", &Vocabulary::sep},  // the format's spelling
    {"tokenizer.ggml.padding_token_id", &Vocabulary::pad},
    {"tokenizer.ggml.mask_token_id", &Vocabulary::mask},
    {"tokenizer.ggml.fim_pre_token_id", &Vocabulary::fim_prefix},
    {"tokenizer.ggml.fim_suf_token_id", &Vocabulary::fim_suffix},
    {"tokenizer.ggml.fim_mid_token_id", &Vocabulary::fim_middle},
    {"tokenizer.ggml.fim_pad_token_id", &Vocabulary::fim_pad},
    {"tokenizer.ggml.fim_rep_token_id", &Vocabulary::fim_repository},
    {"tokenizer.ggml.fim_sep_token_id", &Vocabulary::fim_separator},
    {"tokenizer.ggml.prefix_token_id", &Vocabulary::fim_prefix},
    {"tokenizer.ggml.suffix_token_id", &Vocabulary::fim_suffix},
    {"tokenizer.ggml.middle_token_id", &Vocabulary::fim_middle},
};

[[noreturn]] void fail(const std::string& sentence) {
    throw Error(INLAY_E_FORMAT, sentence);
}

// Numbers of token types in the file; any other prints nothing, as an unused token.
TokenKind kind_of(int64_t type) {
    switch (type) {
        case 1:
            return TokenKind::kNormal;
        case 2:
            return TokenKind::kUnknown;
        case 3:
            return TokenKind::kControl;
        case 4:
            return TokenKind::kUserDefined;
        case 6:
            return TokenKind::kByte;
        default:
            return TokenKind::kUnused;
    }
}

StringTable copy(const GgufStrings& strings) {
    size_t n_bytes = 0;
    for (size_t i = 0; i < strings.size(); ++i) n_bytes += strings[i].size();
    StringTable table;
    table.reserve(strings.size(), n_bytes);
    for (size_t i = 0; i < strings.size(); ++i) table.push_back(strings[i]);
    return table;
}

// A token without text gets a name of its own: several may exist, and no text may mean them.
StringTable copy_tokens(const GgufStrings& strings) {
    StringTable table = copy(strings);
    bool has_empty = false;
    for (size_t i = 0; i < table.size(); ++i) has_empty = has_empty || table[i].empty();
    if (!has_empty) return table;
    StringTable named;
    named.reserve(table.size(), table.n_bytes());
    for (size_t i = 0; i < table.size(); ++i) {
        named.push_back(table[i].empty() ? "[EMPTY_" + std::to_string(i) + "]" : std::string(table[i]));
    }
    return named;
}

void read_tokens(const GgufFile& file, Vocabulary& vocabulary) {
    const auto tokens = file.strings(kTokens);
    if (!tokens) fail(std::string("key '") + kTokens + "' is missing");
    vocabulary.tokens = copy_tokens(*tokens);
    const size_t n = vocabulary.tokens.size();
    if (n == 0) fail(std::string("key '") + kTokens + "' is an empty list");

    vocabulary.kinds.assign(n, TokenKind::kNormal);
    const auto types = file.integers(kTokenTypes);
    if (!types) return;
    if (types->size() < n) {
        fail(std::string("key '") + kTokenTypes + "' has " + std::to_string(types->size()) + " elements for " +
             std::to_string(n) + " tokens");
    }
    for (size_t i = 0; i < n; ++i) vocabulary.kinds[i] = kind_of((*types)[i]);
}

void read_special_ids(const GgufFile& file, Vocabulary& vocabulary) {
    for (const SpecialKey& special : kSpecialKeys) {
        const auto id = file.integer(special.key);
        if (id && *id >= 0 && static_cast<uint64_t>(*id) < vocabulary.tokens.size()) {
            vocabulary.*special.id = static_cast<int32_t>(*id);
        }
    }
}

void read_merges(const GgufFile& file, Vocabulary& vocabulary) {
    const auto merges = file.strings(kMerges);
    if (!merges) fail(std::string("key '") + kMerges + "' is missing");
    vocabulary.merges = copy(*merges);
}

void read_scores(const GgufFile& file, Vocabulary& vocabulary) {
    const auto scores = file.numbers(kScores);
    if (!scores) fail(std::string("key '") + kScores + "' is missing");
    const size_t n = vocabulary.tokens.size();
    if (scores->size() < n) {
        fail(std::string("key '") + kScores + "' has " + std::to_string(scores->size()) + " elements for " +
             std::to_string(n) + " tokens");
    }
    vocabulary.scores.resize(n);
    for (size_t i = 0; i < n; ++i) vocabulary.scores[i] = static_cast<float>((*scores)[i]);
}

void read_byte_pair_parts(const GgufFile& file, Vocabulary& vocabulary) {
    read_merges(file, vocabulary);
    vocabulary.add_bos = find_pre_tokenizer(vocabulary.pre).add_bos;
}

// The ids are those that SentencePiece's trainer gives by default.
void read_sentencepiece_parts(const GgufFile& file, Vocabulary& vocabulary) {
    read_scores(file, vocabulary);
    vocabulary.add_bos = true;
    vocabulary.add_space_prefix = true;
    const auto n = static_cast<int64_t>(vocabulary.tokens.size());
    if (n > 0) vocabulary.unk = 0;
    if (n > 1) vocabulary.bos = 1;
    if (n > 2) vocabulary.eos = 2;
}

bool is_named_phi3(const GgufFile& file) {
    std::string name(file.string("general.name").value_or(""));
    for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return name.find("phi-3") != std::string::npos || name.find("phi3") != std::string::npos;
}

}  // namespace

Vocabulary vocabulary_from_gguf(const GgufFile& file) {
    Vocabulary vocabulary;
    const auto model = file.string("tokenizer.ggml.model");
    if (!model) fail("key 'tokenizer.ggml.model' is missing");
    vocabulary.model = *model;
    vocabulary.pre = file.string("tokenizer.ggml.pre").value_or("");
    read_tokens(file, vocabulary);
    if (vocabulary.model == "gpt2") read_byte_pair_parts(file, vocabulary);
    if (vocabulary.model == "llama") read_sentencepiece_parts(file, vocabulary);
    read_special_ids(file, vocabulary);
    vocabulary.add_bos = file.boolean("tokenizer.ggml.add_bos_token").value_or(vocabulary.add_bos);
    vocabulary.add_eos = file.boolean("tokenizer.ggml.add_eos_token").value_or(false);
    vocabulary.add_space_prefix = file.boolean("tokenizer.ggml.add_space_prefix").value_or(vocabulary.add_space_prefix);
    recognise_special_tokens(vocabulary);
    if (is_named_phi3(file)) recognise_phi3_trimming(vocabulary);
    return vocabulary;
}

}  // namespace inlay
