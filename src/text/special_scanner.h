// Finds special tokens in a text: longer ones first, wherever they stand, then the shorter ones in what is left. All
// occurrences come from one walk of an Aho-Corasick automaton, so time does not grow with the number of tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace inlay {

class SpecialScanner {
public:
    struct Match {
        size_t begin;
        uint32_t length;
        int32_t id;
    };

    // Before the first scan. Empty texts and repeated ones are ignored.
    void add(std::string_view text, int32_t id);
    void finish();

    // Matches that do not overlap, by position.
    std::vector<Match> scan(std::string_view text) const;

    size_t memory_bytes() const { return nodes_.capacity() * sizeof(Node) + edges_.capacity() * sizeof(Edge); }

private:
    // Nodes are prefixes of the texts; node 0 is the empty one.
    struct Node {
        uint32_t fallback = 0;    // the longest proper suffix that is a node
        uint32_t next_match = 0;  // the longest proper suffix that is a text, 0 if none
        uint32_t length = 0;
        int32_t id = -1;  // of the text that ends here
    };
    struct Edge {
        uint64_t key = 0;  // (parent << 8 | byte) + 1, 0 in an empty slot
        uint32_t child = 0;
    };

    uint32_t child(uint32_t node, unsigned char byte) const;
    uint32_t add_child(uint32_t node, unsigned char byte);
    void grow_edges();
    uint32_t step(uint32_t node, unsigned char byte) const;
    // The longest text that ends at this node.
    uint32_t longest_match(uint32_t node) const { return nodes_[node].id >= 0 ? node : nodes_[node].next_match; }

    std::vector<Node> nodes_;
    std::vector<Edge> edges_;  // open addressing, a power of two
    size_t n_edges_ = 0;
};

}  // namespace inlay
