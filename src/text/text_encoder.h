// Turns plain text, in which no special token is left, into token ids: the part of a tokenizer that differs between
// kinds of vocabularies.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace inlay {

class TextEncoder {
public:
    virtual ~TextEncoder() = default;
    // Appends the ids of `text`; any bytes. Safe from many threads at once.
    virtual void encode(std::string_view text, std::vector<int32_t>& ids) const = 0;
};

}  // namespace inlay
