// xxHash, inlined, so that nothing of it is exported. What its hints want inlined, -Og does not inline.
#pragma once

#ifndef NDEBUG
#define XXH_NO_INLINE_HINTS 1
#endif
#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>
