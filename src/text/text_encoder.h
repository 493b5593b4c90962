// The part of a tokenizer that differs between kinds of vocabularies: how plain text, in which no special token is
// left, becomes token ids, and which bytes a token of plain text spells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace inlay {

class TextEncoder {
public:
    virtual ~TextEncoder() = default;
    // Appends the ids of `text`; any bytes. Safe from many threads at once.
    virtual void encode(std::string_view text, std::vector<int32_t>& ids) const = 0;
    // Appends the bytes that a token of plain text stands for, from its spelling in the vocabulary.
    virtual void append_bytes(std::string_view spelling, std::string& out) const = 0;
    // Whether `encode` puts a space before a text that does not have it.
    virtual bool adds_space_prefix() const { return false; }
    // Whether the vocabulary asks to clean up spaces in detokenised text.
    virtual bool cleans_up_spaces() const { return false; }
    // What the encoder keeps beside the vocabulary.
    virtual size_t memory_bytes() const = 0;
};

}  // namespace inlay
