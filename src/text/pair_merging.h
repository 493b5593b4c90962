// The loop that every vocabulary of merges shares: of all neighbours the best pair is joined, and of equally good ones
// the leftmost, until none is left that may be joined. Time grows as n log n, whatever the symbols are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace inlay {

// A row of symbols that the caller keeps by place: 0 to n - 1 at first; a joined pair stays at its left place.
class PairMerging {
public:
    static constexpr uint32_t kNoRank = UINT32_MAX;

    // `rank_of(left, right)`: how early these neighbours are joined, less is earlier; kNoRank: never.
    // `join(left, right)`: makes the symbol at `left` the joined one.
    template <typename RankOf, typename Join>
    void run(uint32_t n, const RankOf& rank_of, const Join& join) {
        places_.resize(n);
        heap_.clear();
        for (uint32_t i = 0; i < n; ++i) places_[i] = {i == 0 ? kNoPlace : i - 1, i + 1 == n ? kNoPlace : i + 1, 0};
        for (uint32_t i = 0; i < n; ++i) push_pair(i, rank_of);
        while (!heap_.empty()) {
            const Candidate best = heap_.front();
            std::pop_heap(heap_.begin(), heap_.end());
            heap_.pop_back();
            Place& left = places_[best.left];
            if (left.rank != best.rank) continue;
            Place& right = places_[left.next];
            join(best.left, left.next);
            right.rank = kNoRank;
            left.next = right.next;
            if (right.next != kNoPlace) places_[right.next].previous = best.left;
            push_pair(best.left, rank_of);
            if (left.previous != kNoPlace) push_pair(left.previous, rank_of);
        }
    }

    // The places that are left, in order.
    template <typename Visit>
    void for_each_place(const Visit& visit) const {
        if (places_.empty()) return;
        for (uint32_t i = 0; i != kNoPlace; i = places_[i].next) visit(i);
    }

private:
    static constexpr uint32_t kNoPlace = UINT32_MAX;

    struct Place {
        uint32_t previous;
        uint32_t next;
        uint32_t rank;  // of the pair with the next place: tells a candidate in the heap that is out of date
    };
    struct Candidate {
        uint32_t rank;
        uint32_t left;
        bool operator<(const Candidate& other) const {  // for a heap whose top is the best
            return rank != other.rank ? rank > other.rank : left > other.left;
        }
    };

    template <typename RankOf>
    void push_pair(uint32_t left, const RankOf& rank_of) {
        Place& place = places_[left];
        place.rank = place.next == kNoPlace ? kNoRank : rank_of(left, place.next);
        if (place.rank == kNoRank) return;
        heap_.push_back({place.rank, left});
        std::push_heap(heap_.begin(), heap_.end());
    }

    std::vector<Place> places_;
    std::vector<Candidate> heap_;
};

}  // namespace inlay
