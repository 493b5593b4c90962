// The format of a saved session (docs/saved-sessions.md): what is written, and what is checked when it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/cache.h"
#include "engine/engine.h"
#include "engine/saved_stream.h"

namespace inlay {

// The section of what a session is beside its tokens and blocks.
struct SavedState {
    static constexpr uint32_t kIgnoreEnd = 1;  // in flags

    uint64_t n_tokens = 0;
    uint64_t n_computed = 0;
    uint64_t highest_computed = 0;
    uint64_t n_new_tokens = 0;
    uint64_t seed = 0;
    uint64_t max_new_tokens = 0;
    float temperature = 0;
    float top_p = 0;
    float min_p = 0;
    uint32_t top_k = 0;
    uint32_t flags = 0;
    uint32_t finish = 0;         // INLAY_FINISH_*
    uint32_t n_waiting = 0;      // bytes of a character that is not whole yet
    unsigned char waiting[4]{};  // zero from n_waiting on
};
static_assert(sizeof(SavedState) == 80);

// `sequence` stays as it is meanwhile: nobody writes into its blocks or takes them. Allocates before it writes.
void write_saved_session(SaveSink& sink, const Engine& engine, const KvLayout& layout, const SavedState& state,
                         const Sequence& sequence, bool has_foreign_blocks);

struct SavedSession {
    SavedState state;
    std::vector<int32_t> tokens;         // of the vocabulary
    std::vector<size_t> first_blocks;    // [n_groups]
    std::unique_ptr<std::byte[]> pages;  // as RestoredPages
    bool same_numerics = false;
};

// What a session can take.
struct SavedLimits {
    uint64_t n_tokens = 0;
    uint64_t n_blocks = 0;  // of the whole cache
};

// Checks everything but what the state means. Takes no more memory than the limits allow and the source has.
// INLAY_E_FORMAT when it is damaged, INLAY_E_UNSUPPORTED for another version, INLAY_E_MISMATCH for another model or
// layout, INLAY_E_CONTEXT_FULL, INLAY_E_CACHE_FULL.
SavedSession read_saved_session(SaveSource& source, const Engine& engine, const KvLayout& layout,
                                const SavedLimits& limits);

}  // namespace inlay
