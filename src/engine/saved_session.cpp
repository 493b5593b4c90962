#include "engine/saved_session.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "engine/numerics.h"

namespace inlay {
namespace {

// In the order in which they stand.
enum SectionKind : uint32_t { kLayoutSection = 1, kStateSection, kTokensSection, kBlocksSection };

constexpr size_t kTokensAtOnce = size_t{1} << 16;

// Where a group's blocks begin. They go on to the last of the computed tokens.
struct SavedGroup {
    uint64_t first_block;
    uint64_t n_blocks;
};

size_t element_bytes(KvType type) {
    return type == KvType::kF32 ? 4 : 2;
}

uint32_t type_id(KvType type) {
    return type == KvType::kF32 ? INLAY_KV_F32 : INLAY_KV_F16;
}

uint64_t checksum_of(const SavedHead& head) {
    return XXH3_64bits(&head, offsetof(SavedHead, checksum));
}

SavedHead head_for(const Engine& engine, const KvLayout& layout, const NumericsId& numerics) {
    SavedHead head{};
    std::copy(std::begin(SavedHead::kMagic), std::end(SavedHead::kMagic), head.magic);
    head.version = SavedHead::kVersion;
    head.n_sections = SavedHead::kSections;
    head.fingerprint = engine.fingerprint();
    head.key_type = type_id(layout.key_type);
    head.value_type = type_id(layout.value_type);
    head.numerics_mode = numerics.mode;
    head.numerics_revision = numerics.revision;
    head.checksum = checksum_of(head);
    return head;
}

// The geometry of the pages.
std::vector<uint64_t> layout_values(const ModelSpec& spec, const KvLayout& layout) {
    std::vector<uint64_t> values = {kBlockTokens,    layout.page_bytes, layout.groups.size(), layout.places.size(),
                                    spec.n_kv_heads, spec.head_dim,     spec.value_dim};
    for (const KvGroup& group : layout.groups) values.insert(values.end(), {group.window, group.layers.size()});
    for (const KvLayout::Place& place : layout.places)
        values.insert(values.end(), {place.group, place.offset, place.key_bytes, place.value_bytes});
    return values;
}

// Calls visit(offset in the page, KvType, elements of a token, whether they are keys) for each head of each layer.
template <typename Visit>
void for_each_plane(const ModelSpec& spec, const KvLayout& layout, size_t group, const Visit& visit) {
    for (const uint32_t layer : layout.groups[group].layers) {
        for (size_t head = 0; head < spec.n_kv_heads; ++head) {
            visit(layout.key_offset(layer, head), layout.key_type, size_t{spec.head_dim}, true);
            visit(layout.value_offset(layer, head), layout.value_type, size_t{spec.value_dim}, false);
        }
    }
}

// Positions that are not computed may hold what another session computed: it does not leave with this one.
void clear_positions(const ModelSpec& spec, const KvLayout& layout, size_t group, size_t first, std::byte* page) {
    for_each_plane(spec, layout, group, [&](size_t offset, KvType type, size_t dim, bool is_keys) {
        const size_t element = element_bytes(type);
        std::byte* plane = page + offset;
        if (!is_keys) {
            std::memset(plane + first * dim * element, 0, (kBlockTokens - first) * dim * element);
            return;
        }
        for (size_t d = 0; d < dim; ++d)
            std::memset(plane + (d * kBlockTokens + first) * element, 0, (kBlockTokens - first) * element);
    });
}

template <typename Bits>
bool all_finite(const std::byte* values, size_t n, Bits exponent) {
    bool finite = true;
    for (size_t i = 0; i < n; ++i) {
        Bits bits;
        std::memcpy(&bits, values + i * sizeof bits, sizeof bits);
        finite &= (bits & exponent) != exponent;
    }
    return finite;
}

bool is_finite(const ModelSpec& spec, const KvLayout& layout, size_t group, const std::byte* page) {
    bool finite = true;
    for_each_plane(spec, layout, group, [&](size_t offset, KvType type, size_t dim, bool) {
        const size_t n = dim * kBlockTokens;
        finite &= type == KvType::kF32 ? all_finite<uint32_t>(page + offset, n, 0x7f800000)
                                       : all_finite<uint16_t>(page + offset, n, 0x7c00);
    });
    return finite;
}

void write_blocks(SaveSink& sink, const ModelSpec& spec, const KvLayout& layout, const Sequence& sequence) {
    const size_t n_blocks = blocks_of(sequence.n_computed());
    const size_t n_in_last = sequence.n_computed() % kBlockTokens;
    std::vector<SavedGroup> groups;
    uint64_t n_bytes = layout.groups.size() * sizeof(SavedGroup);
    for (size_t group = 0; group < layout.groups.size(); ++group) {
        std::byte* const* pages = sequence.pages(group);
        const auto first = static_cast<size_t>(
            std::find_if(pages, pages + n_blocks, [](const std::byte* page) { return page != nullptr; }) - pages);
        groups.push_back({first, n_blocks - first});
        n_bytes += (n_blocks - first) * layout.page_bytes;
    }
    const auto last_page = std::make_unique_for_overwrite<std::byte[]>(layout.page_bytes);

    SectionWriter section(sink, kBlocksSection, n_bytes);
    section.write(groups.data(), groups.size() * sizeof(SavedGroup));
    for (size_t group = 0; group < groups.size(); ++group) {
        for (size_t i = groups[group].first_block; i < n_blocks; ++i) {
            const std::byte* page = sequence.pages(group)[i];
            if (n_in_last != 0 && i + 1 == n_blocks) {
                std::memcpy(last_page.get(), page, layout.page_bytes);
                clear_positions(spec, layout, group, n_in_last, last_page.get());
                page = last_page.get();
            }
            section.write(page, layout.page_bytes);
        }
    }
    section.end();
}

// Returns whether what was saved was computed as this engine computes.
bool read_head(SaveSource& source, const Engine& engine, const KvLayout& layout) {
    SavedHead head;
    read_whole(source, &head, sizeof head, "head");
    if (std::memcmp(head.magic, SavedHead::kMagic, sizeof head.magic) != 0)
        throw_damaged("it does not begin with 'INLAYSAV'");
    if (head.checksum != checksum_of(head)) throw_damaged("its head was changed: its checksum is another");
    if (head.version != SavedHead::kVersion)
        throw Error(INLAY_E_UNSUPPORTED, "saved session: version is " + std::to_string(head.version) + "; version " +
                                             std::to_string(SavedHead::kVersion) + " is read");
    const bool is_plain =
        std::all_of(std::begin(head.reserved), std::end(head.reserved), [](auto v) { return v == 0; });
    if (head.n_sections != SavedHead::kSections || !is_plain)
        throw Error(INLAY_E_UNSUPPORTED, "saved session: its head says things that this library does not know");
    if (head.fingerprint != engine.fingerprint())
        throw Error(INLAY_E_MISMATCH, "saved session: it is of another model");
    if (head.key_type != type_id(layout.key_type) || head.value_type != type_id(layout.value_type))
        throw Error(INLAY_E_MISMATCH, "saved session: its key and value types are " + std::to_string(head.key_type) +
                                          " and " + std::to_string(head.value_type) + ", the cache's " +
                                          std::to_string(type_id(layout.key_type)) + " and " +
                                          std::to_string(type_id(layout.value_type)) + " (INLAY_KV_*)");
    return NumericsId{head.numerics_mode, head.numerics_revision} == numerics_of(engine.compute());
}

void read_layout(SaveSource& source, const ModelSpec& spec, const KvLayout& layout) {
    const std::vector<uint64_t> expected = layout_values(spec, layout);
    std::vector<uint64_t> values(expected.size());
    SectionReader section(source, kLayoutSection, "layout");
    section.require_bytes(values.size() * sizeof(uint64_t));
    section.read(values.data(), values.size() * sizeof(uint64_t));
    section.end();
    if (values != expected) throw Error(INLAY_E_MISMATCH, "saved session: its blocks are laid out in another way");
}

SavedState read_state(SaveSource& source) {
    SavedState state;
    SectionReader section(source, kStateSection, "state");
    section.require_bytes(sizeof state);
    section.read(&state, sizeof state);
    section.end();
    if (state.n_computed > state.highest_computed || state.highest_computed > state.n_tokens)
        throw_damaged("more tokens were computed than there are");
    return state;
}

std::vector<int32_t> read_tokens(SaveSource& source, uint64_t n_tokens, uint32_t n_vocabulary) {
    std::vector<int32_t> tokens;
    SectionReader section(source, kTokensSection, "tokens");
    section.require_bytes(n_tokens * sizeof(int32_t));
    while (tokens.size() < n_tokens) {
        const size_t n_before = tokens.size();
        tokens.resize(static_cast<size_t>(std::min<uint64_t>(n_tokens, n_before + kTokensAtOnce)));
        section.read(tokens.data() + n_before, (tokens.size() - n_before) * sizeof(int32_t));
    }
    section.end();
    for (const int32_t token : tokens) {
        if (token < 0 || static_cast<uint32_t>(token) >= n_vocabulary)
            throw_damaged("token " + std::to_string(token) + " is outside the vocabulary");
    }
    return tokens;
}

void read_blocks(SaveSource& source, const ModelSpec& spec, const KvLayout& layout, uint64_t n_cache_blocks,
                 SavedSession& saved) {
    const auto n_computed = static_cast<size_t>(saved.state.n_computed);
    const size_t n_blocks = blocks_of(n_computed);
    SectionReader section(source, kBlocksSection, "blocks");
    std::vector<SavedGroup> groups(layout.groups.size());
    section.read(groups.data(), groups.size() * sizeof(SavedGroup));
    uint64_t n_pages = 0;
    for (size_t group = 0; group < groups.size(); ++group) {
        const uint64_t first = groups[group].first_block;
        const KvGroup& kv_group = layout.groups[group];
        const bool fits = first >= kv_group.first_kept_block(n_computed) && first <= n_blocks &&
                          first <= kv_group.first_seen_block(n_computed) && groups[group].n_blocks == n_blocks - first;
        if (!fits) throw_damaged("group " + std::to_string(group) + " has other blocks than its window reaches");
        saved.first_blocks.push_back(static_cast<size_t>(first));
        n_pages += n_blocks - first;
    }
    section.require_bytes(groups.size() * sizeof(SavedGroup) + n_pages * layout.page_bytes);
    if (n_pages > n_cache_blocks)
        throw Error(INLAY_E_CACHE_FULL, "the session needs " + std::to_string(n_pages) +
                                            " blocks of a cache that has " + std::to_string(n_cache_blocks));

    saved.pages = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(n_pages) * layout.page_bytes);
    for (size_t i = 0; i < n_pages; ++i) section.read(saved.pages.get() + i * layout.page_bytes, layout.page_bytes);
    section.end();
    const std::byte* page = saved.pages.get();
    for (size_t group = 0; group < groups.size(); ++group) {
        for (size_t i = saved.first_blocks[group]; i < n_blocks; ++i, page += layout.page_bytes) {
            if (!is_finite(spec, layout, group, page))
                throw_damaged("block " + std::to_string(i) + " of group " + std::to_string(group) +
                              " holds values that are no finite numbers");
        }
    }
}

}  // namespace

void write_saved_session(SaveSink& sink, const Engine& engine, const KvLayout& layout, const SavedState& state,
                         const Sequence& sequence, bool has_foreign_blocks) {
    const SavedHead head = head_for(engine, layout, has_foreign_blocks ? NumericsId{} : numerics_of(engine.compute()));
    const std::vector<uint64_t> values = layout_values(engine.spec(), layout);
    const std::span<const int32_t> tokens = sequence.tokens();
    sink.write(&head, sizeof head);
    const auto write_section = [&](uint32_t kind, const void* bytes, size_t n) {
        SectionWriter section(sink, kind, n);
        section.write(bytes, n);
        section.end();
    };
    write_section(kLayoutSection, values.data(), values.size() * sizeof(uint64_t));
    write_section(kStateSection, &state, sizeof state);
    write_section(kTokensSection, tokens.data(), tokens.size_bytes());
    write_blocks(sink, engine.spec(), layout, sequence);
}

SavedSession read_saved_session(SaveSource& source, const Engine& engine, const KvLayout& layout,
                                const SavedLimits& limits) {
    SavedSession saved;
    saved.same_numerics = read_head(source, engine, layout);
    read_layout(source, engine.spec(), layout);
    saved.state = read_state(source);
    if (saved.state.n_tokens > limits.n_tokens)
        throw Error(INLAY_E_CONTEXT_FULL, "the context of " + std::to_string(limits.n_tokens) +
                                              " tokens has no room for the " + std::to_string(saved.state.n_tokens) +
                                              " of the saved session");
    saved.tokens = read_tokens(source, saved.state.n_tokens, engine.n_vocabulary());
    read_blocks(source, engine.spec(), layout, limits.n_blocks, saved);
    return saved;
}

}  // namespace inlay
