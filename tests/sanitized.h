// Sanitizers make a test ten to thirty times slower, the emulator of another processor as much. A test of many like
// cases does every n-th of them there; elsewhere all are done.
#pragma once

#include <cstddef>

namespace inlay::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

#if defined(INLAY_TEST_EMULATED)
inline constexpr bool kEmulated = true;
#else
inline constexpr bool kEmulated = false;
#endif

inline constexpr bool kSlowed = kSanitized || kEmulated;

// Whether case number `index` is done, one of `n` where tests are slow.
constexpr bool is_done(size_t index, size_t n) {
    return !kSlowed || index % n == 0;
}

}  // namespace inlay::test
