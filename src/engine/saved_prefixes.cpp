#include "engine/saved_prefixes.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>

#include "engine/saved_format.h"

namespace inlay {
namespace {

// The tokens of one block after those of its parent.
struct SavedNode {
    uint64_t parent = 0;  // its number, counted from 1; 0: none
    uint64_t extra_key = 0;
    std::array<int32_t, kBlockTokens> tokens{};

    bool operator<(const SavedNode& other) const {
        return std::tie(parent, extra_key, tokens) < std::tie(other.parent, other.extra_key, other.tokens);
    }
};
static_assert(sizeof(SavedNode) == 80);

// Nodes are numbered from 1, parents before their children. No two are equal.
class SavedTree {
public:
    // The number of a node, which is added unless it is there.
    uint64_t add(const SavedNode& node) {
        const auto [place, is_new] = numbers_.try_emplace(node, nodes_.size() + 1);
        if (is_new) nodes_.push_back(node);
        return place->second;
    }
    size_t size() const { return nodes_.size(); }
    const SavedNode& node(uint64_t number) const { return nodes_[static_cast<size_t>(number) - 1]; }
    std::span<const SavedNode> nodes() const { return nodes_; }

private:
    std::vector<SavedNode> nodes_;
    std::map<SavedNode, uint64_t> numbers_;
};

// A page or none for each node and group.
template <typename Page>
class NodePages {
public:
    NodePages(size_t n_nodes, size_t n_groups) : n_groups_(n_groups), pages_(n_nodes * n_groups) {}

    Page& of(uint64_t number, size_t group) { return pages_[(static_cast<size_t>(number) - 1) * n_groups_ + group]; }
    // Node by node, and there group by group.
    std::vector<Page>& all() { return pages_; }

private:
    size_t n_groups_;
    std::vector<Page> pages_;
};

// A sequence that has the block of a node.
struct HeldBlock {
    const Sequence* sequence = nullptr;
    size_t block = 0;
};

// A section of values of one kind, as many as it has.
template <typename T>
std::vector<T> read_list(SaveSource& source, uint32_t kind, const char* name) {
    SectionReader section(source, kind, name);
    const uint64_t n_values = section.n_bytes() / sizeof(T);
    section.require_bytes(n_values * sizeof(T));
    std::vector<T> values;
    section.read_values(values, n_values);
    section.end();
    return values;
}

std::vector<uint64_t> path_of(const Sequence& pin, SavedTree& tree) {
    std::vector<uint64_t> path;
    SavedNode node;
    node.extra_key = pin.extra_key();
    for (size_t i = 0; i < pin.n_computed() / kBlockTokens; ++i) {
        std::ranges::copy(tokens_of_block(pin.tokens(), i), node.tokens.begin());
        node.parent = tree.add(node);
        path.push_back(node.parent);
    }
    return path;
}

SavedTree read_nodes(SaveSource& source, uint32_t n_vocabulary) {
    SavedTree tree;
    for (const SavedNode& node : read_list<SavedNode>(source, kNodesSection, "nodes")) {
        const size_t n_before = tree.size();
        if (node.parent > n_before || (node.parent != 0 && tree.node(node.parent).extra_key != node.extra_key))
            throw_damaged("node " + std::to_string(n_before + 1) + " has a parent that it can not have");
        check_tokens(node.tokens, n_vocabulary);
        if (tree.add(node) <= n_before)
            throw_damaged("node " + std::to_string(n_before + 1) + " is there a second time");
    }
    return tree;
}

// The path of each pin, from the root.
std::vector<std::vector<uint64_t>> read_pins(SaveSource& source, const SavedTree& tree) {
    std::vector<std::vector<uint64_t>> paths;
    std::vector<bool> is_held(tree.size());
    for (const uint64_t pin : read_list<uint64_t>(source, kPinsSection, "pins")) {
        if (pin == 0 || pin > tree.size())
            throw_damaged("a pin of node " + std::to_string(pin) + ", which is not there");
        std::vector<uint64_t>& path = paths.emplace_back();
        for (uint64_t number = pin; number != 0; number = tree.node(number).parent) {
            is_held[static_cast<size_t>(number) - 1] = true;
            path.push_back(number);
        }
        std::reverse(path.begin(), path.end());
    }
    if (std::find(is_held.begin(), is_held.end(), false) != is_held.end()) throw_damaged("a node that no pin holds");
    return paths;
}

// Numbers the pages that pins need, from 1, in the order in which they are saved. Returns how many there are.
size_t number_pages(const std::vector<std::vector<uint64_t>>& paths, const KvLayout& layout,
                    NodePages<size_t>& numbers) {
    for (const std::vector<uint64_t>& path : paths) {
        for (size_t group = 0; group < layout.groups.size(); ++group) {
            const BlockRange needed = needed_blocks(layout.groups[group], path.size() * kBlockTokens);
            for (size_t block = needed.first; block < needed.end; ++block) numbers.of(path[block], group) = 1;
        }
    }
    size_t n_pages = 0;
    for (size_t& number : numbers.all())
        if (number != 0) number = ++n_pages;
    return n_pages;
}

SavedPrefix prefix_of(const std::vector<uint64_t>& path, const SavedTree& tree, const KvLayout& layout,
                      NodePages<const std::byte*>& pages) {
    SavedPrefix prefix;
    prefix.extra_key = tree.node(path.front()).extra_key;
    for (const uint64_t number : path) {
        const SavedNode& node = tree.node(number);
        prefix.tokens.insert(prefix.tokens.end(), node.tokens.begin(), node.tokens.end());
    }
    for (size_t group = 0; group < layout.groups.size(); ++group) {
        // Another pin may need more of the same path.
        const BlockRange needed = needed_blocks(layout.groups[group], prefix.tokens.size());
        for (size_t block = 0; block < path.size(); ++block) {
            const bool is_needed = block >= needed.first && block < needed.end;
            prefix.pages.push_back(is_needed ? pages.of(path[block], group) : nullptr);
        }
    }
    return prefix;
}

}  // namespace

void write_saved_prefixes(SaveSink& sink, const Engine& engine, const KvLayout& layout,
                          std::span<const std::shared_ptr<const Sequence>> pins) {
    const std::vector<uint64_t> geometry = layout_values(engine.spec(), layout);
    const size_t n_groups = layout.groups.size();
    SavedTree tree;
    std::vector<std::vector<uint64_t>> paths;
    std::vector<uint64_t> last_nodes;
    for (const auto& pin : pins) {
        paths.push_back(path_of(*pin, tree));
        if (!paths.back().empty()) last_nodes.push_back(paths.back().back());
    }
    NodePages<HeldBlock> blocks(tree.size(), n_groups);
    for (size_t i = 0; i < pins.size(); ++i) {
        for (size_t group = 0; group < n_groups; ++group) {
            const BlockRange needed = needed_blocks(layout.groups[group], paths[i].size() * kBlockTokens);
            for (size_t block = needed.first; block < needed.end; ++block)
                blocks.of(paths[i][block], group) = {pins[i].get(), block};
        }
    }
    const auto n_pages = static_cast<uint64_t>(
        std::count_if(blocks.all().begin(), blocks.all().end(), [](const HeldBlock& held) { return held.sequence; }));
    const uint64_t n_page_bytes = n_pages * layout.page_bytes;
    const std::span<const SavedNode> nodes = tree.nodes();
    const std::span<const uint64_t> last = last_nodes;
    if (!sink.expects(saved_bytes(geometry, {nodes.size_bytes(), last.size_bytes(), n_page_bytes}))) return;

    SavedPages pages(engine.spec(), layout);
    write_beginning(sink, kSavedPrefixes, engine, layout, numerics_of(engine.compute()), geometry);
    write_section(sink, kNodesSection, nodes.data(), nodes.size_bytes());
    write_section(sink, kPinsSection, last.data(), last.size_bytes());
    SectionWriter section(sink, kBlocksSection, n_page_bytes);
    for (size_t i = 0; i < blocks.all().size(); ++i) {
        const HeldBlock& held = blocks.all()[i];
        if (held.sequence) section.write(pages.page(*held.sequence, i % n_groups, held.block), layout.page_bytes);
    }
    section.end();
}

SavedPrefixes read_saved_prefixes(SaveSource& source, const Engine& engine, const KvLayout& layout,
                                  uint64_t n_cache_blocks) {
    const size_t n_groups = layout.groups.size();
    const NumericsId numerics = read_beginning(source, kSavedPrefixes, engine, layout);
    if (!(numerics == numerics_of(engine.compute())))
        throw Error(INLAY_E_MISMATCH,
                    "what was saved was computed in another compute mode, or by a library with other "
                    "arithmetic: prefixes are shared, and would change the tokens of sessions");
    const SavedTree tree = read_nodes(source, engine.n_vocabulary());
    const std::vector<std::vector<uint64_t>> paths = read_pins(source, tree);

    NodePages<size_t> numbers(tree.size(), n_groups);
    const size_t n_pages = number_pages(paths, layout, numbers);
    SavedPrefixes saved;
    SectionReader section(source, kBlocksSection, "blocks");
    section.require_bytes(uint64_t{n_pages} * layout.page_bytes);
    saved.pages = read_pages(section, layout, n_pages, n_cache_blocks);
    section.end();
    source.end();

    NodePages<const std::byte*> pages(tree.size(), n_groups);
    for (size_t i = 0; i < numbers.all().size(); ++i) {
        if (numbers.all()[i] == 0) continue;
        pages.all()[i] = saved.pages.get() + (numbers.all()[i] - 1) * layout.page_bytes;
        check_values(engine.spec(), layout, i % n_groups, pages.all()[i]);
    }
    for (const std::vector<uint64_t>& path : paths) saved.pins.push_back(prefix_of(path, tree, layout, pages));
    return saved;
}

}  // namespace inlay
