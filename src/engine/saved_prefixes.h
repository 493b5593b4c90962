// The format of saved prefixes (docs/saved-sessions.md): the pins of a cache as one tree, so that what they share is
// there once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cache/cache.h"
#include "engine/engine.h"
#include "engine/saved_stream.h"

namespace inlay {

// Writes what these sequences, which stay as they are meanwhile, hold in whole blocks; of windows what is needed to go
// on. Those that hold nothing are left out. Allocates before it writes.
void write_saved_prefixes(SaveSink& sink, const Engine& engine, const KvLayout& layout,
                          std::span<const std::shared_ptr<const Sequence>> pins);

struct SavedPrefix {
    uint64_t extra_key = 0;
    std::vector<int32_t> tokens;          // whole blocks, of the vocabulary
    std::vector<const std::byte*> pages;  // as RestoredPrefix
};

struct SavedPrefixes {
    std::vector<SavedPrefix> pins;       // in the order in which they were written
    std::unique_ptr<std::byte[]> pages;  // those that the pins point into
};

// Checks everything. Takes memory for what the source has, and pages for no more than `n_cache_blocks`.
// INLAY_E_FORMAT when it is damaged, INLAY_E_UNSUPPORTED for another version, INLAY_E_MISMATCH for another model,
// layout or arithmetic, INLAY_E_CACHE_FULL.
SavedPrefixes read_saved_prefixes(SaveSource& source, const Engine& engine, const KvLayout& layout,
                                  uint64_t n_cache_blocks);

}  // namespace inlay
