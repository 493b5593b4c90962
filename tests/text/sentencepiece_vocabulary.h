// Small SentencePiece vocabularies, made by hand.
#pragma once

#include <initializer_list>
#include <string>

#include "text/vocabulary.h"

namespace inlay::test {

class SentencePieces {
public:
    explicit SentencePieces(bool add_space_prefix = true) {
        vocabulary_.model = "llama";
        vocabulary_.add_space_prefix = add_space_prefix;
    }
    SentencePieces& add(const std::string& text, float score, TokenKind kind = TokenKind::kNormal) {
        vocabulary_.tokens.push_back(text);
        vocabulary_.kinds.push_back(kind);
        vocabulary_.scores.push_back(score);
        return *this;
    }
    SentencePieces& letters(std::initializer_list<const char*> texts) {
        for (const char* text : texts) add(text, -100);
        return *this;
    }
    SentencePieces& unknown() {
        vocabulary_.unk = static_cast<int32_t>(vocabulary_.tokens.size());
        return add("<unk>", 0, TokenKind::kUnknown);
    }
    SentencePieces& bytes() {
        const std::string digits = "0123456789ABCDEF";
        for (size_t byte = 0; byte < 256; ++byte)
            add(std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">", 0, TokenKind::kByte);
        return *this;
    }
    Vocabulary made() const { return vocabulary_; }

private:
    Vocabulary vocabulary_;
};

// What a small real one has: unknown, control and byte tokens, letters, words and runs of spaces and letters. As in
// Gemma there are tokens of their own where no space is put before a text: behind each a text would begin anew.
inline Vocabulary small_sentencepieces(bool add_space_prefix) {
    SentencePieces pieces(add_space_prefix);
    pieces.unknown().add("<s>", 0, TokenKind::kControl).add("</s>", 0, TokenKind::kControl).bytes();
    float score = 0;
    for (const char* text :
         {"▁t", "he", "▁the", "in", "aa", "▁▁", "er", "aaaa", "▁▁▁▁", "77", "aaaaaaaa", "▁a", "一一"})
        pieces.add(text, --score);
    if (!add_space_prefix) pieces.add("<|", -500, TokenKind::kUserDefined);
    for (const char* text : {"▁", "t", "h", "e", "i", "n", "a", "r", "7", "一", "é", ".", "<", "s", ">"})
        pieces.add(text, --score);
    Vocabulary vocabulary = pieces.made();
    vocabulary.bos = 1;
    vocabulary.eos = 2;
    vocabulary.add_bos = true;
    return vocabulary;
}

}  // namespace inlay::test
