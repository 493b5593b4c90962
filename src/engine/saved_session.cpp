#include "engine/saved_session.h"

#include <algorithm>
#include <string>

#include "engine/saved_format.h"

namespace inlay {
namespace {

// Which blocks of a group are saved.
struct SavedGroup {
    uint64_t first_block;
    uint64_t n_blocks;
};

// The blocks that the sequence has of each group.
std::vector<SavedGroup> groups_of(const KvLayout& layout, const Sequence& sequence) {
    std::vector<SavedGroup> groups;
    for (size_t group = 0; group < layout.groups.size(); ++group) {
        const size_t end = layout.groups[group].end_block(sequence.n_computed());
        std::byte* const* pages = sequence.pages(group);
        const auto first = static_cast<size_t>(
            std::find_if(pages, pages + end, [](const std::byte* page) { return page != nullptr; }) - pages);
        groups.push_back({first, end - first});
    }
    return groups;
}

// Whether these may be the blocks of a group when `n_computed` tokens are there.
bool fits(const SavedGroup& saved, const KvGroup& group, size_t n_computed) {
    const BlockRange needed = needed_blocks(group, n_computed);
    return saved.first_block >= std::min(group.first_kept_block(n_computed), needed.end) &&
           saved.first_block <= needed.first && saved.n_blocks == needed.end - saved.first_block;
}

uint64_t block_bytes(const std::vector<SavedGroup>& groups, const KvLayout& layout) {
    uint64_t n_bytes = groups.size() * sizeof(SavedGroup);
    for (const SavedGroup& group : groups) n_bytes += group.n_blocks * layout.page_bytes;
    return n_bytes;
}

void write_blocks(SaveSink& sink, const KvLayout& layout, const Sequence& sequence,
                  const std::vector<SavedGroup>& groups, SavedPages& pages) {
    SectionWriter section(sink, kBlocksSection, block_bytes(groups, layout));
    section.write(groups.data(), groups.size() * sizeof(SavedGroup));
    for (size_t group = 0; group < groups.size(); ++group) {
        const SavedGroup& saved = groups[group];
        for (size_t i = saved.first_block; i < saved.first_block + saved.n_blocks; ++i)
            section.write(pages.page(sequence, group, i), layout.page_bytes);
    }
    section.end();
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
    section.read_values(tokens, n_tokens);
    section.end();
    check_tokens(tokens, n_vocabulary);
    return tokens;
}

void read_blocks(SaveSource& source, const ModelSpec& spec, const KvLayout& layout, uint64_t n_cache_blocks,
                 SavedSession& saved) {
    const auto n_computed = static_cast<size_t>(saved.state.n_computed);
    SectionReader section(source, kBlocksSection, "blocks");
    std::vector<SavedGroup> groups(layout.groups.size());
    section.read(groups.data(), groups.size() * sizeof(SavedGroup));
    uint64_t n_pages = 0;
    for (size_t group = 0; group < groups.size(); ++group) {
        if (!fits(groups[group], layout.groups[group], n_computed))
            throw_damaged("group " + std::to_string(group) + " has other blocks than its window reaches");
        saved.first_blocks.push_back(static_cast<size_t>(groups[group].first_block));
        n_pages += groups[group].n_blocks;
    }
    section.require_bytes(block_bytes(groups, layout));
    saved.pages = read_pages(section, layout, n_pages, n_cache_blocks);
    section.end();
    const std::byte* page = saved.pages.get();
    for (size_t group = 0; group < groups.size(); ++group) {
        for (uint64_t i = 0; i < groups[group].n_blocks; ++i, page += layout.page_bytes)
            check_values(spec, layout, group, page);
    }
}

}  // namespace

void write_saved_session(SaveSink& sink, const Engine& engine, const KvLayout& layout, const SavedState& state,
                         const Sequence& sequence, bool has_foreign_blocks) {
    const std::vector<uint64_t> geometry = layout_values(engine.spec(), layout);
    const std::vector<SavedGroup> groups = groups_of(layout, sequence);
    const std::span<const int32_t> tokens = sequence.tokens();
    if (!sink.expects(saved_bytes(geometry, {sizeof state, tokens.size_bytes(), block_bytes(groups, layout)}))) return;
    SavedPages pages(engine.spec(), layout);

    write_beginning(sink, kSavedSession, engine, layout,
                    has_foreign_blocks ? NumericsId{} : numerics_of(engine.compute()), geometry);
    write_section(sink, kStateSection, &state, sizeof state);
    write_section(sink, kTokensSection, tokens.data(), tokens.size_bytes());
    write_blocks(sink, layout, sequence, groups, pages);
}

SavedSession read_saved_session(SaveSource& source, const Engine& engine, const KvLayout& layout,
                                const SavedLimits& limits) {
    SavedSession saved;
    saved.same_numerics = read_beginning(source, kSavedSession, engine, layout) == numerics_of(engine.compute());
    saved.state = read_state(source);
    if (saved.state.n_tokens > limits.n_tokens)
        throw Error(INLAY_E_CONTEXT_FULL, "the context of " + std::to_string(limits.n_tokens) +
                                              " tokens has no room for the " + std::to_string(saved.state.n_tokens) +
                                              " of the saved session");
    saved.tokens = read_tokens(source, saved.state.n_tokens, engine.n_vocabulary());
    read_blocks(source, engine.spec(), layout, limits.n_blocks, saved);
    source.end();
    return saved;
}

}  // namespace inlay
