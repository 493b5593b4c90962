// Bytes of a file inside a sentence for a person: names in damaged files may hold anything, and a sentence must stay
// one readable line of valid UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace inlay {

// True for UTF-8 without control characters.
bool is_printable(std::string_view bytes);

// The text with everything else written as \n, \r, \t or \xNN. What passes `max_bytes` is cut and replaced by "...".
std::string printable(std::string_view bytes, size_t max_bytes);

}  // namespace inlay
