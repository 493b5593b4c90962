#include "text/special_scanner.h"

#include <algorithm>
#include <map>
#include <utility>

namespace inlay {

namespace {

uint64_t edge_key(uint32_t node, unsigned char byte) {
    return ((uint64_t{node} << 8) | byte) + 1;
}

// Finaliser of a 64-bit mix: every input bit reaches the low bits.
size_t spread(uint64_t key) {
    key *= 0x9E3779B97F4A7C15u;
    return static_cast<size_t>(key ^ (key >> 32));
}

}  // namespace

void SpecialScanner::add(std::string_view text, int32_t id) {
    if (text.empty()) return;
    if (nodes_.empty()) nodes_.emplace_back();
    uint32_t node = 0;
    for (const char c : text) node = add_child(node, static_cast<unsigned char>(c));
    if (nodes_[node].id < 0) nodes_[node].id = id;
}

void SpecialScanner::finish() {
    // Parents before children: a fallback is shorter than its node.
    struct Link {
        uint32_t parent;
        uint32_t node;
        unsigned char byte;
    };
    std::vector<Link> links;
    links.reserve(n_edges_);
    for (const Edge& edge : edges_) {
        if (edge.key == 0) continue;
        const uint64_t key = edge.key - 1;
        links.push_back({static_cast<uint32_t>(key >> 8), edge.child, static_cast<unsigned char>(key & 0xFF)});
    }
    std::sort(links.begin(), links.end(),
              [&](const Link& a, const Link& b) { return nodes_[a.node].length < nodes_[b.node].length; });
    for (const Link& link : links) {
        Node& node = nodes_[link.node];
        node.fallback = link.parent == 0 ? 0 : step(nodes_[link.parent].fallback, link.byte);
        node.next_match = longest_match(node.fallback);
    }
}

std::vector<SpecialScanner::Match> SpecialScanner::scan(std::string_view text) const {
    std::vector<Match> matches;
    if (nodes_.empty()) return matches;

    // Per length, the places where a text of that length ends; the longest of each place first, a shorter one of the
    // same place only when the longer was refused.
    struct Ending {
        size_t end;
        uint32_t node;
    };
    std::map<uint32_t, std::vector<Ending>> endings;
    uint32_t state = 0;
    for (size_t at = 0; at < text.size(); ++at) {
        state = step(state, static_cast<unsigned char>(text[at]));
        const uint32_t match = longest_match(state);
        if (match != 0) endings[nodes_[match].length].push_back({at + 1, match});
    }
    if (endings.empty()) return matches;

    // What is taken is at least as long as what comes later, so looking at both ends of a candidate is enough.
    std::vector<bool> taken(text.size());
    while (!endings.empty()) {
        auto longest = std::prev(endings.end());
        std::vector<Ending> places = std::move(longest->second);
        endings.erase(longest);
        std::sort(places.begin(), places.end(), [](const Ending& a, const Ending& b) { return a.end < b.end; });
        for (const Ending& place : places) {
            const Node& node = nodes_[place.node];
            const size_t begin = place.end - node.length;
            if (taken[place.end - 1]) continue;
            if (taken[begin]) {
                if (node.next_match != 0) {
                    endings[nodes_[node.next_match].length].push_back({place.end, node.next_match});
                }
                continue;
            }
            std::fill(taken.begin() + static_cast<ptrdiff_t>(begin), taken.begin() + static_cast<ptrdiff_t>(place.end),
                      true);
            matches.push_back({begin, node.length, node.id});
        }
    }
    std::sort(matches.begin(), matches.end(), [](const Match& a, const Match& b) { return a.begin < b.begin; });
    return matches;
}

uint32_t SpecialScanner::child(uint32_t node, unsigned char byte) const {
    if (edges_.empty()) return 0;
    const uint64_t key = edge_key(node, byte);
    const size_t mask = edges_.size() - 1;
    for (size_t at = spread(key) & mask;; at = (at + 1) & mask) {
        if (edges_[at].key == key) return edges_[at].child;
        if (edges_[at].key == 0) return 0;
    }
}

uint32_t SpecialScanner::add_child(uint32_t node, unsigned char byte) {
    if (const uint32_t existing = child(node, byte)) return existing;
    if ((n_edges_ + 1) * 2 > edges_.size()) grow_edges();
    const auto created = static_cast<uint32_t>(nodes_.size());
    Node fresh;
    fresh.length = nodes_[node].length + 1;
    nodes_.push_back(fresh);
    const uint64_t key = edge_key(node, byte);
    const size_t mask = edges_.size() - 1;
    size_t at = spread(key) & mask;
    while (edges_[at].key != 0) at = (at + 1) & mask;
    edges_[at] = {key, created};
    ++n_edges_;
    return created;
}

void SpecialScanner::grow_edges() {
    std::vector<Edge> old(std::max<size_t>(64, edges_.size() * 2));
    old.swap(edges_);
    const size_t mask = edges_.size() - 1;
    for (const Edge& edge : old) {
        if (edge.key == 0) continue;
        size_t at = spread(edge.key) & mask;
        while (edges_[at].key != 0) at = (at + 1) & mask;
        edges_[at] = edge;
    }
}

uint32_t SpecialScanner::step(uint32_t node, unsigned char byte) const {
    for (;;) {
        if (const uint32_t next = child(node, byte)) return next;
        if (node == 0) return 0;
        node = nodes_[node].fallback;
    }
}

}  // namespace inlay
