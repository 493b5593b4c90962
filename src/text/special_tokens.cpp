#include "text/special_tokens.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <unordered_map>

namespace inlay {

namespace {

using Spellings = std::initializer_list<std::string_view>;

// Where a vocabulary has several spellings of a role the first listed is taken.
struct Role {
    int32_t Vocabulary::*id;
    Spellings spellings;
};

const Role kRoles[] = {
    {&Vocabulary::eot,
     {"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "<EOT>", "_<EOT>",
      "[EOT]", "<｜end▁of▁sentence｜>", "<end_of_utterance>"}},
    {&Vocabulary::eom, {"<|eom_id|>"}},
    {&Vocabulary::fim_prefix,
     {"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>",
      "<|prefix|>"}},
    {&Vocabulary::fim_suffix,
     {"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>",
      "<|suffix|>"}},
    {&Vocabulary::fim_middle,
     {"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>",
      "<|middle|>"}},
    {&Vocabulary::fim_pad, {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}},
    {&Vocabulary::fim_repository, {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}},
    {&Vocabulary::fim_separator, {"<|file_sep|>"}},
};

const Spellings kEndings = {"<|eot_id|>",
                            "<|im_end|>",
                            "<|end|>",
                            "<|return|>",
                            "<|call|>",
                            "<|flush|>",
                            "<|calls|>",
                            "<end_of_turn>",
                            "<|endoftext|>",
                            "</s>",
                            "<|eom_id|>",
                            "<EOT>",
                            "_<EOT>",
                            "[EOT]",
                            "[EOS]",
                            "<|end_of_text|>",
                            "<end_of_utterance>",
                            "<eos>",
                            "<turn|>",
                            "<|tool_response>",
                            "<｜end▁of▁sentence｜>",
                            "[e~["};

// The channel marks of gpt-oss: part of the text that its hosts parse, so they are always rendered.
const Spellings kAlwaysText = {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"};

// The ids of the spellings above that the vocabulary has.
class KnownTokens {
public:
    explicit KnownTokens(const StringTable& tokens) {
        for (const Role& role : kRoles) note(role.spellings);
        note(kEndings);
        note(kAlwaysText);
        note({"<|plamo:eos|>"});
        for (size_t id = 0; id < tokens.size(); ++id) {
            const auto found = ids_.find(tokens[id]);
            if (found != ids_.end()) found->second = static_cast<int32_t>(id);
        }
    }

    int32_t id(std::string_view spelling) const { return ids_.at(spelling); }

private:
    void note(Spellings spellings) {
        for (const std::string_view spelling : spellings) ids_.emplace(spelling, kNoToken);
    }

    std::unordered_map<std::string_view, int32_t> ids_;
};

class Recogniser {
public:
    explicit Recogniser(Vocabulary& vocabulary) : vocabulary_(vocabulary), known_(vocabulary.tokens) {}

    void run() {
        for (const Role& role : kRoles) fill(role);
        end_with(vocabulary_.fim_pad);
        end_with(vocabulary_.fim_repository);
        end_with(vocabulary_.fim_separator);
        for (const std::string_view spelling : kEndings) {
            const int32_t id = known_.id(spelling);
            set_kind(id, TokenKind::kControl);
            end_with(id);
        }
        for (const std::string_view spelling : kAlwaysText) set_kind(known_.id(spelling), TokenKind::kUserDefined);
        end_with(vocabulary_.eos);
        end_with(vocabulary_.eot);
        end_with(vocabulary_.eom);
        correct_end_mark();
        correct_s_mark();
        auto& endings = vocabulary_.end_of_generation;
        std::sort(endings.begin(), endings.end());
    }

private:
    void fill(const Role& role) {
        int32_t& id = vocabulary_.*role.id;
        for (auto spelling = role.spellings.begin(); id == kNoToken && spelling != role.spellings.end(); ++spelling) {
            id = known_.id(*spelling);
            set_kind(id, TokenKind::kControl);
        }
    }

    // In the formats of gpt-oss and Solar "<|end|>" ends one message of several, not the generation.
    void correct_end_mark() {
        const bool calls = ends("<|call|>") || ends("<|calls|>");
        if (!ends("<|end|>") || !calls || (!ends("<|return|>") && !ends("<|flush|>"))) return;
        continue_after(known_.id("<|end|>"), TokenKind::kUserDefined);
    }

    // Gemma 4 and PLaMo have an ordinary "</s>".
    void correct_s_mark() {
        if (!ends("</s>") || (!ends("<|tool_response>") && !ends("<|plamo:eos|>"))) return;
        continue_after(known_.id("</s>"), TokenKind::kNormal);
    }

    bool ends(std::string_view spelling) const {
        const int32_t id = known_.id(spelling);
        const auto& endings = vocabulary_.end_of_generation;
        return id != kNoToken && std::find(endings.begin(), endings.end(), id) != endings.end();
    }

    void end_with(int32_t id) {
        auto& endings = vocabulary_.end_of_generation;
        if (id != kNoToken && std::find(endings.begin(), endings.end(), id) == endings.end()) endings.push_back(id);
    }

    void continue_after(int32_t id, TokenKind kind) {
        auto& endings = vocabulary_.end_of_generation;
        endings.erase(std::find(endings.begin(), endings.end(), id));
        set_kind(id, kind);
    }

    void set_kind(int32_t id, TokenKind kind) {
        if (id != kNoToken) vocabulary_.kinds[static_cast<size_t>(id)] = kind;
    }

    Vocabulary& vocabulary_;
    KnownTokens known_;
};

}  // namespace

void recognise_special_tokens(Vocabulary& vocabulary) {
    Recogniser(vocabulary).run();
}

void recognise_phi3_trimming(Vocabulary& vocabulary) {
    for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
        const TokenKind kind = vocabulary.kinds[id];
        const std::string_view text = vocabulary.tokens[id];
        if (kind == TokenKind::kNormal || kind == TokenKind::kByte || kind == TokenKind::kUnused) continue;
        if (text == "<unk>" || text == "<s>" || text == "<|endoftext|>") continue;
        vocabulary.trims_after.push_back(static_cast<int32_t>(id));
    }
}

}  // namespace inlay
