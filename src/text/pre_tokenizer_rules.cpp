// The published ways to cut a text into words, as data. Each comment is the regular expression that the vocabulary was
// trained with, or the list of them that its model files stand for. Where programs differ on a name's meaning, a GGUF
// file means what llama.cpp makes of it.
#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/printable.h"
#include "text/pre_tokenizer.h"

namespace inlay {

namespace {

using namespace char_class;

constexpr uint32_t kMany = UINT32_MAX / 2;

constexpr PatternItem one(CharClasses any_of, CharClasses none_of = 0) {
    return {any_of, none_of, 1, 1};
}
constexpr PatternItem maybe(CharClasses any_of, CharClasses none_of = 0) {
    return {any_of, none_of, 0, 1};
}
constexpr PatternItem some(CharClasses any_of, CharClasses none_of = 0) {
    return {any_of, none_of, 1, kMany};
}
constexpr PatternItem any_number(CharClasses any_of, CharClasses none_of = 0) {
    return {any_of, none_of, 0, kMany};
}
constexpr PatternItem up_to(uint32_t most, CharClasses any_of) {
    return {any_of, 0, 1, most};
}

constexpr Pattern pattern(PatternItem a) {
    return {{a}, 1};
}
constexpr Pattern pattern(PatternItem a, PatternItem b) {
    return {{a, b}, 2};
}
constexpr Pattern pattern(PatternItem a, PatternItem b, PatternItem c) {
    return {{a, b, c}, 3};
}
constexpr Pattern contraction(Contraction kind) {
    return {{}, 0, kind};
}
constexpr Pattern with_contraction(Pattern p) {
    p.optional_suffix = Contraction::kAnyCase;
    return p;
}
constexpr Pattern before_space_or_end(Pattern p) {
    p.before_space_or_end = true;
    return p;
}

constexpr CharClasses kWordSpace = kSpace | kLetter | kNumber;

// \s+(?!\S)  and  \s+
constexpr Pattern kSpacesBeforeLast = before_space_or_end(pattern(some(kSpace)));
constexpr Pattern kSpaces = pattern(some(kSpace));
// \s*[\r\n]+
constexpr Pattern kLineEnds = pattern(any_number(kSpace), some(kLineEnd));
//  ?[^\s\p{L}\p{N}]+[\r\n]*
constexpr Pattern kMarksAndLineEnds = pattern(maybe(kBlank), some(kAny, kWordSpace), any_number(kLineEnd));
//  ?[^\s\p{L}\p{N}]+[\r\n/]*
constexpr Pattern kMarksAndPathEnds = pattern(maybe(kBlank), some(kAny, kWordSpace), any_number(kLineEnd | kSlash));
// [^\r\n\p{L}\p{N}]?\p{L}+
constexpr CharClasses kNoWordStart = kLineEnd | kLetter | kNumber;
constexpr Pattern kLetters = pattern(maybe(kAny, kNoWordStart), some(kLetter));

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
constexpr Pattern kGpt2Words[] = {contraction(Contraction::kExact),
                                  pattern(maybe(kBlank), some(kLetter)),
                                  pattern(maybe(kBlank), some(kNumber)),
                                  pattern(maybe(kBlank), some(kAny, kWordSpace)),
                                  kSpacesBeforeLast,
                                  kSpaces};
// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
constexpr Pattern kLlama3Words[] = {contraction(Contraction::kAnyCase),
                                    kLetters,
                                    pattern(up_to(3, kNumber)),
                                    kMarksAndLineEnds,
                                    kLineEnds,
                                    kSpacesBeforeLast,
                                    kSpaces};
// The same with \p{N}
constexpr Pattern kQwen2Words[] = {contraction(Contraction::kAnyCase),
                                   kLetters,
                                   pattern(one(kNumber)),
                                   kMarksAndLineEnds,
                                   kLineEnds,
                                   kSpacesBeforeLast,
                                   kSpaces};
// The same with \p{N}+, after numbers were cut
constexpr Pattern kMiniCpm5Words[] = {contraction(Contraction::kAnyCase),
                                      kLetters,
                                      pattern(some(kNumber)),
                                      kMarksAndLineEnds,
                                      kLineEnds,
                                      kSpacesBeforeLast,
                                      kSpaces};
// Qwen2's where letters take their marks along: [^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+ and  ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*
constexpr Pattern kQwen35Words[] = {contraction(Contraction::kAnyCase),
                                    pattern(maybe(kAny, kNoWordStart), some(kLetter | kMark)),
                                    pattern(one(kNumber)),
                                    pattern(maybe(kBlank), some(kAny, kWordSpace | kMark), any_number(kLineEnd)),
                                    kLineEnds,
                                    kSpacesBeforeLast,
                                    kSpaces};
// Qwen2's with \s*[\r\n]+ after  ?[^\s\p{L}\p{N}\r\n]+
constexpr Pattern kSeedCoderWords[] = {contraction(Contraction::kAnyCase),
                                       kLetters,
                                       pattern(one(kNumber)),
                                       pattern(maybe(kBlank), some(kAny, kWordSpace)),
                                       kLineEnds,
                                       kSpacesBeforeLast,
                                       kSpaces};
// Qwen2's with \s*[\r\n]
constexpr Pattern kBailingWords[] = {contraction(Contraction::kAnyCase),
                                     kLetters,
                                     pattern(one(kNumber)),
                                     kMarksAndLineEnds,
                                     pattern(any_number(kSpace), one(kLineEnd)),
                                     kSpacesBeforeLast,
                                     kSpaces};
// Words of an upper-case start and a lower-case rest; letters without ASCII case are both.
constexpr PatternItem kUppers = any_number(kLetter, kAsciiLower);
constexpr PatternItem kLowers = any_number(kLetter, kAsciiUpper);
constexpr Pattern kCapitalised = pattern(maybe(kAny, kNoWordStart), kUppers, some(kLetter, kAsciiUpper));
constexpr Pattern kUpperCase = pattern(maybe(kAny, kNoWordStart), some(kLetter, kAsciiLower), kLowers);
constexpr Pattern kTekkenWords[] = {kCapitalised,      kUpperCase, pattern(one(kNumber)), kMarksAndPathEnds, kLineEnds,
                                    kSpacesBeforeLast, kSpaces};
constexpr Pattern kGpt4oWords[] = {with_contraction(kCapitalised),
                                   with_contraction(kUpperCase),
                                   pattern(up_to(3, kNumber)),
                                   kMarksAndPathEnds,
                                   kLineEnds,
                                   kSpacesBeforeLast,
                                   kSpaces};
// [!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|...
constexpr Pattern kDeepseek3Words[] = {
    pattern(one(kAsciiMark), some(kAsciiLower | kAsciiUpper)),
    pattern(maybe(kAny, kLineEnd | kLetter | kPunctuation | kSymbol), some(kLetter | kMark)),
    pattern(maybe(kBlank), some(kPunctuation | kSymbol), any_number(kLineEnd)),
    kLineEnds,
    kSpacesBeforeLast,
    kSpaces};

constexpr Pattern kEachLineEnd[] = {pattern(one(kLineEnd))};
constexpr Pattern kEachNumber[] = {pattern(one(kNumber))};
constexpr Pattern kNumbers[] = {pattern(some(kNumber))};
constexpr Pattern kNumbersOfThree[] = {pattern(up_to(3, kNumber))};
constexpr Pattern kThreeDigits[] = {pattern(PatternItem{kDigit, 0, 3, 3})};
constexpr Pattern kMarks[] = {pattern(some(kPunctuation | kMathAscii))};
constexpr Pattern kFalconMarks[] = {pattern(some(kPunctuation | kMathAscii | kBacktick))};
constexpr Pattern kSpacedCasedLetters[] = {pattern(maybe(kSpace), some(kCasedLetter))};
constexpr Pattern kSpacedWideMarks[] = {pattern(maybe(kSpace), some(kWideMark))};
constexpr Pattern kSpacedLetters[] = {pattern(maybe(kSpace), some(kLetter))};
constexpr Pattern kSpacedPunctuation[] = {pattern(maybe(kSpace), some(kPunctuation))};
constexpr Pattern kAsianLetterRuns[] = {pattern(some(kAsianLetter))};
constexpr Pattern kHanKanaRuns[] = {pattern(some(kHanKana))};

constexpr PreTokenizerPass kGpt2[] = {{kGpt2Words}};
constexpr PreTokenizerPass kStarcoder[] = {{kEachNumber}, {kGpt2Words}};
constexpr PreTokenizerPass kLlama3[] = {{kLlama3Words}};
constexpr PreTokenizerPass kQwen2[] = {{kQwen2Words}};
constexpr PreTokenizerPass kQwen35[] = {{kQwen35Words}};
constexpr PreTokenizerPass kSeedCoder[] = {{kSeedCoderWords}};
constexpr PreTokenizerPass kBailing[] = {{kBailingWords}};
constexpr PreTokenizerPass kMiniCpm5[] = {{kNumbersOfThree}, {kMiniCpm5Words}};
constexpr PreTokenizerPass kTekken[] = {{kTekkenWords}};
constexpr PreTokenizerPass kGpt4o[] = {{kGpt4oWords}};
constexpr PreTokenizerPass kFalcon[] = {{kFalconMarks}, {kGpt2Words}, {kThreeDigits}};
constexpr PreTokenizerPass kDefault[] = {{kMarks}, {kGpt2Words}, {kNumbers}, {kThreeDigits}};
// [\r\n], \s?[cased letters]+, \s?[marks]+, \s+$, [Asian letters]+, \p{N}+
constexpr PreTokenizerPass kDeepseekLlm[] = {{kEachLineEnd}, {kSpacedCasedLetters}, {kSpacedWideMarks},
                                             {{}, true},     {kAsianLetterRuns},    {kNumbers}};
// [\r\n], \s?\p{L}+, \s?\p{P}+, [Asian letters]+, \p{N}
constexpr PreTokenizerPass kDeepseekCoder[] = {
    {kEachLineEnd}, {kSpacedLetters}, {kSpacedPunctuation}, {kAsianLetterRuns}, {kEachNumber}};
// \p{N}{1,3}, [Han and kana]+, words
constexpr PreTokenizerPass kDeepseek3[] = {{kNumbersOfThree}, {kHanKanaRuns}, {kDeepseek3Words}};

constexpr bool kWholeWords = true;
constexpr bool kCleanUp = true;
constexpr bool kBos = true;

constexpr PreTokenizer kPreTokenizers[] = {
    {"default", kDefault, false, kCleanUp},
    {"gpt-2 phi-2 gigachat a.x-4.0 mellum mpt olmo jais exaone4", kGpt2, false, kCleanUp},
    {"trillion granite-docling", kGpt2},
    {"smollm command-r", kStarcoder},
    {"starcoder refact codeshell exaone minerva-7b mellum2", kStarcoder, false, kCleanUp},
    {"llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2", kLlama3, kWholeWords, kCleanUp, kBos},
    {"dbrx smaug-bpe chatglm-bpe", kLlama3, false, kCleanUp},
    {"glm4 glm5", kLlama3, kWholeWords, kCleanUp},
    {"qwen2 deepseek-r1-qwen kormo hunyuan solar-open grok-2", kQwen2},
    {"stablelm2 megrez", kQwen2, false, kCleanUp},
    {"qwen35", kQwen35},
    {"seed-coder", kSeedCoder},
    {"bailingmoe bailingmoe2 llada-moe", kBailing},
    {"minicpm5", kMiniCpm5, kWholeWords, kCleanUp},
    {"tekken", kTekken, kWholeWords, false, kBos},
    {"gpt-4o llama4 kanana2 minimax-m2", kGpt4o},
    {"falcon", kFalcon, false, kCleanUp},
    {"deepseek-llm", kDeepseekLlm},
    {"deepseek-coder", kDeepseekCoder},
    {"deepseek-v3 hunyuan-dense joyai-llm", kDeepseek3},
};

bool lists(std::string_view names, std::string_view name) {
    while (!names.empty()) {
        const size_t blank = names.find(' ');
        if (names.substr(0, blank) == name) return true;
        names = blank == std::string_view::npos ? std::string_view{} : names.substr(blank + 1);
    }
    return false;
}

}  // namespace

const PreTokenizer& find_pre_tokenizer(std::string_view name) {
    if (name.empty()) name = "default";
    for (const PreTokenizer& pre_tokenizer : kPreTokenizers) {
        if (lists(pre_tokenizer.names, name)) return pre_tokenizer;
    }
    throw Error(INLAY_E_UNSUPPORTED, "the vocabulary's pre-tokenizer \"" + printable(name, 64) + "\" is not known");
}

}  // namespace inlay
