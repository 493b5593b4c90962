// What saved sessions and saved prefixes have in common (docs/saved-sessions.md): the head, the layout of blocks, and
// the pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/kv_layout.h"
#include "engine/engine.h"
#include "engine/numerics.h"
#include "engine/saved_stream.h"

namespace inlay {

// Kinds of sections.
enum SavedSectionKind : uint32_t {
    kLayoutSection = 1,
    kStateSection,
    kTokensSection,
    kBlocksSection,
    kNodesSection,
    kPinsSection
};

// At the beginning, in all versions.
struct SavedHead {
    char magic[8];
    uint32_t version;
    uint32_t n_sections;
    ModelFingerprint fingerprint;
    uint32_t key_type;  // INLAY_KV_*
    uint32_t value_type;
    uint32_t numerics_mode;
    uint32_t numerics_revision;
    uint64_t reserved[9];
    uint64_t checksum;  // of the bytes before it
};
static_assert(sizeof(SavedHead) == 128);

// What is saved.
struct SavedKind {
    char magic[9];
    uint32_t version;
    uint32_t n_sections;
};
inline constexpr SavedKind kSavedSession{"INLAYSAV", 1, 4};
inline constexpr SavedKind kSavedPrefixes{"INLAYPIN", 1, 4};

// Head, and section of the blocks' layout.
std::vector<uint64_t> layout_values(const ModelSpec& spec, const KvLayout& layout);
void write_beginning(SaveSink& sink, const SavedKind& kind, const Engine& engine, const KvLayout& layout,
                     const NumericsId& numerics, std::span<const uint64_t> layout_values);
// Bytes that `write_beginning` writes, and sections with these contents after it.
uint64_t saved_bytes(std::span<const uint64_t> layout_values, std::initializer_list<uint64_t> contents);

// Returns the arithmetic that computed the blocks. INLAY_E_FORMAT, INLAY_E_UNSUPPORTED for another version,
// INLAY_E_MISMATCH for another model or layout.
NumericsId read_beginning(SaveSource& source, const SavedKind& kind, const Engine& engine, const KvLayout& layout);

// INLAY_E_FORMAT when one is outside the vocabulary.
void check_tokens(std::span<const int32_t> tokens, uint32_t n_vocabulary);

// The first block of a group without which no token after the first `n_computed` can be computed; all from there on
// are needed.
inline size_t first_needed_block(const KvGroup& group, size_t n_computed) {
    return group.first_seen_block(n_computed);
}

// Positions that are not computed may hold what another session computed: it does not leave with this one.
void clear_positions(const ModelSpec& spec, const KvLayout& layout, size_t group, size_t first, std::byte* page);

// [n_pages, page_bytes], once the section is known to have them. INLAY_E_CACHE_FULL when the cache has fewer blocks.
std::unique_ptr<std::byte[]> read_pages(SectionReader& section, const KvLayout& layout, uint64_t n_pages,
                                        uint64_t n_cache_blocks);
// INLAY_E_FORMAT when a value is infinite or NaN.
void check_finite(const ModelSpec& spec, const KvLayout& layout, size_t group, const std::byte* page);

}  // namespace inlay
