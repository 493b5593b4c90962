// Sanitizers make a test ten to thirty times slower. A test of many like cases does every n-th of them there; a build
// without sanitizers does all.
#pragma once

#include <cstddef>

namespace inlay::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// Whether case number `index` is done, one of `n` under a sanitizer.
constexpr bool is_done(size_t index, size_t n) {
    return !kSanitized || index % n == 0;
}

}  // namespace inlay::test
