// A vocabulary as a model file gives it: plain data, before anything is built on it. src/model/gguf_vocabulary.h reads
// one from a GGUF file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/string_table.h"

namespace inlay {

enum class TokenKind : uint8_t {
    kNormal,
    kUnknown,      // stands for what the vocabulary cannot say
    kControl,      // structure, not text: matched in text only when special tokens are parsed
    kUserDefined,  // text of its own: matched in any text before all else
    kUnused,
    kByte,  // "<0x41>"
};

inline constexpr int32_t kNoToken = -1;

struct Vocabulary {
    std::string model;             // "gpt2": byte-pair encoding; "llama": SentencePiece's
    std::string pre;               // the pre-tokenizer's name; empty: "default"
    StringTable tokens;            // [n_tokens], spelled in the byte alphabet where they are byte-level
    std::vector<TokenKind> kinds;  // [n_tokens]
    StringTable merges;            // of byte-pair encoding: "left right", best first
    std::vector<float> scores;     // [n_tokens] of SentencePiece

    int32_t bos = kNoToken;  // begins a sequence
    int32_t eos = kNoToken;  // ends it
    int32_t eot = kNoToken;  // ends a turn
    int32_t eom = kNoToken;  // ends a message that a tool answers
    int32_t unk = kNoToken;
    int32_t sep = kNoToken;
    int32_t pad = kNoToken;
    int32_t mask = kNoToken;
    int32_t fim_prefix = kNoToken;  // fill in the middle: what stands before, after, and where the answer begins
    int32_t fim_suffix = kNoToken;
    int32_t fim_middle = kNoToken;
    int32_t fim_pad = kNoToken;
    int32_t fim_repository = kNoToken;
    int32_t fim_separator = kNoToken;

    bool add_bos = false;
    bool add_eos = false;
    bool add_space_prefix = false;

    std::vector<int32_t> end_of_generation;  // sorted
    std::vector<int32_t> trims_after;        // sorted; special tokens that swallow the white space behind them
};

}  // namespace inlay
