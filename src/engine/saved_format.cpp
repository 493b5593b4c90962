#include "engine/saved_format.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace inlay {
namespace {

// INLAY_KV_* in the order of the types.
uint32_t type_id(KvType type) {
    static_assert(static_cast<int>(KvType::kF32) + 1 == INLAY_KV_F32);
    static_assert(static_cast<int>(KvType::kInt4) + 1 == INLAY_KV_INT4);
    return static_cast<uint32_t>(type) + 1;
}

uint64_t checksum_of(const SavedHead& head) {
    return XXH3_64bits(&head, offsetof(SavedHead, checksum));
}

SavedHead head_for(const SavedKind& kind, const Engine& engine, const KvLayout& layout, const NumericsId& numerics) {
    SavedHead head{};
    std::memcpy(head.magic, kind.magic, sizeof head.magic);
    head.version = kind.version;
    head.n_sections = kind.n_sections;
    head.fingerprint = engine.fingerprint();
    head.key_type = type_id(layout.key_type);
    head.value_type = type_id(layout.value_type);
    head.numerics_mode = numerics.mode;
    head.numerics_revision = numerics.revision;
    head.checksum = checksum_of(head);
    return head;
}

NumericsId read_head(SaveSource& source, const SavedKind& kind, const Engine& engine, const KvLayout& layout) {
    SavedHead head;
    read_whole(source, &head, sizeof head, "head");
    if (std::memcmp(head.magic, kind.magic, sizeof head.magic) != 0)
        throw_damaged(std::string("it does not begin with '") + kind.magic + "'");
    if (head.checksum != checksum_of(head)) throw_damaged("its head was changed: its checksum is another");
    if (head.version != kind.version)
        throw Error(INLAY_E_UNSUPPORTED, "what was saved has version " + std::to_string(head.version) + "; version " +
                                             std::to_string(kind.version) + " is read");
    const bool is_plain =
        std::all_of(std::begin(head.reserved), std::end(head.reserved), [](auto v) { return v == 0; });
    if (head.n_sections != kind.n_sections || !is_plain)
        throw Error(INLAY_E_UNSUPPORTED, "the head of what was saved says things that this library does not know");
    if (head.fingerprint != engine.fingerprint()) throw Error(INLAY_E_MISMATCH, "what was saved is of another model");
    if (head.key_type != type_id(layout.key_type) || head.value_type != type_id(layout.value_type))
        throw Error(INLAY_E_MISMATCH, "the key and value types of what was saved are " + std::to_string(head.key_type) +
                                          " and " + std::to_string(head.value_type) + ", the cache's " +
                                          std::to_string(type_id(layout.key_type)) + " and " +
                                          std::to_string(type_id(layout.value_type)) + " (INLAY_KV_*)");
    return {head.numerics_mode, head.numerics_revision};
}

void read_layout(SaveSource& source, const ModelSpec& spec, const KvLayout& layout) {
    const std::vector<uint64_t> expected = layout_values(spec, layout);
    std::vector<uint64_t> values(expected.size());
    SectionReader section(source, kLayoutSection, "layout");
    section.require_bytes(values.size() * sizeof(uint64_t));
    section.read(values.data(), values.size() * sizeof(uint64_t));
    section.end();
    if (values != expected) throw Error(INLAY_E_MISMATCH, "the blocks of what was saved are laid out in another way");
}

}  // namespace

// The geometry of the pages.
std::vector<uint64_t> layout_values(const ModelSpec& spec, const KvLayout& layout) {
    std::vector<uint64_t> values = {kBlockTokens,    layout.page_bytes, layout.groups.size(), layout.places.size(),
                                    spec.n_kv_heads, spec.head_dim,     spec.value_dim};
    for (const KvGroup& group : layout.groups) {
        const auto span = static_cast<uint64_t>(group.span);
        values.insert(values.end(), {group.window, group.layers.size(), span});
    }
    for (const KvLayout::Place& place : layout.places)
        values.insert(values.end(), {place.group, place.offset, place.key_bytes, place.value_bytes});
    return values;
}

uint64_t saved_bytes(std::span<const uint64_t> layout_values, std::initializer_list<uint64_t> contents) {
    uint64_t n = sizeof(SavedHead) + section_bytes(layout_values.size_bytes());
    for (const uint64_t content : contents) n += section_bytes(content);
    return n;
}

void write_beginning(SaveSink& sink, const SavedKind& kind, const Engine& engine, const KvLayout& layout,
                     const NumericsId& numerics, std::span<const uint64_t> layout_values) {
    const SavedHead head = head_for(kind, engine, layout, numerics);
    sink.write(&head, sizeof head);
    write_section(sink, kLayoutSection, layout_values.data(), layout_values.size_bytes());
}

NumericsId read_beginning(SaveSource& source, const SavedKind& kind, const Engine& engine, const KvLayout& layout) {
    const NumericsId numerics = read_head(source, kind, engine, layout);
    read_layout(source, engine.spec(), layout);
    return numerics;
}

void check_tokens(std::span<const int32_t> tokens, uint32_t n_vocabulary) {
    for (const int32_t token : tokens) {
        if (token < 0 || static_cast<uint32_t>(token) >= n_vocabulary)
            throw_damaged("token " + std::to_string(token) + " is outside the vocabulary");
    }
}

std::unique_ptr<std::byte[]> read_pages(SectionReader& section, const KvLayout& layout, uint64_t n_pages,
                                        uint64_t n_cache_blocks) {
    if (n_pages > n_cache_blocks)
        throw Error(INLAY_E_CACHE_FULL, "what was saved needs " + std::to_string(n_pages) +
                                            " blocks of a cache that has " + std::to_string(n_cache_blocks));
    auto pages = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(n_pages) * layout.page_bytes);
    for (size_t i = 0; i < n_pages; ++i) section.read(pages.get() + i * layout.page_bytes, layout.page_bytes);
    return pages;
}

}  // namespace inlay
