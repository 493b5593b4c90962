// Token ids that a host passes.
#pragma once

#include <span>
#include <string>

#include "api/boundary.h"

namespace inlay::api {

inline void check_token(int32_t token, const std::string& name, uint32_t n_vocabulary) {
    if (token < 0 || static_cast<uint32_t>(token) >= n_vocabulary)
        invalid(name + " is " + std::to_string(token) + ", outside the vocabulary of " + std::to_string(n_vocabulary) +
                " tokens");
}

inline std::span<const int32_t> token_argument(const int32_t* tokens, size_t n_tokens, uint32_t n_vocabulary) {
    if (n_tokens == 0) return {};
    require(tokens, "tokens");
    if (n_tokens > SIZE_MAX / sizeof(int32_t) / 2)
        invalid("n_tokens is " + std::to_string(n_tokens) + ", more than memory can hold");
    for (size_t i = 0; i < n_tokens; ++i)
        if (tokens[i] < 0 || static_cast<uint32_t>(tokens[i]) >= n_vocabulary)
            check_token(tokens[i], "tokens[" + std::to_string(i) + "]", n_vocabulary);
    return {tokens, n_tokens};
}

}  // namespace inlay::api
