// What saved sessions and saved prefixes have in common (docs/saved-sessions.md): the head, the layout of blocks, and
// the pages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/kv_layout.h"
#include "cache/sequence.h"
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

// Blocks `first`.. before `end` of a group.
struct BlockRange {
    size_t first = 0;
    size_t end = 0;
};
// Those without which no token after the first `n_computed` can be computed.
inline BlockRange needed_blocks(const KvGroup& group, size_t n_computed) {
    const size_t end = group.end_block(n_computed);
    return {std::min(group.first_seen_block(n_computed), end), end};
}

// Takes the pages of one block and group, and has a copy of those in which something must not leave with them.
class SavedPages {
public:
    SavedPages(const ModelSpec& spec, const KvLayout& layout)
        : spec_(spec), layout_(layout), copy_(std::max<size_t>(1, layout.n_open_pages) * layout.page_bytes) {}

    // The page of a block in which positions from `n_computed` on are not computed, or have no place. What they hold is
    // another session's.
    const std::byte* page(const Sequence& sequence, size_t group, size_t block);

private:
    void clear_positions(size_t first_group, size_t n_in_block);

    const ModelSpec& spec_;
    const KvLayout& layout_;
    std::vector<std::byte> copy_;  // of one page, or of all pages of an exact form
};

// [n_pages, page_bytes], once the section is known to have them. INLAY_E_CACHE_FULL when the cache has fewer blocks.
std::unique_ptr<std::byte[]> read_pages(SectionReader& section, const KvLayout& layout, uint64_t n_pages,
                                        uint64_t n_cache_blocks);
// INLAY_E_FORMAT when a value is infinite or NaN, or is none that this library writes. Pages of an exact form follow
// each other from `page` on, and are checked with the first of them.
void check_values(const ModelSpec& spec, const KvLayout& layout, size_t group, const std::byte* page);

}  // namespace inlay
