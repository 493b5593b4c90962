// Thousands of random operations on several sequences of one small cache. The model is naive: every slot a sequence
// sees must hold the mark of its own prefix, and all invariants hold after every operation.
#include <catch2/catch.hpp>
#include <memory>
#include <random>
#include <set>

#include "cache/cache.h"
#include "tests/cache/prefix_marks.h"
#include "tests/sanitized.h"

using namespace inlay;
using namespace inlay::marks;

namespace {

uint64_t hash_of_two_bits(uint64_t parent_id, uint64_t extra_key, BlockTokens tokens) {
    return hash_prefix(parent_id, extra_key, tokens) & 3;
}

struct Player {
    std::unique_ptr<Sequence> sequence;
    uint64_t extra_key = 0;
};

class Game {
public:
    Game(const KvLayout& layout, const CacheOptions& options, bool clears, uint64_t seed)
        : layout_(layout),
          cache_(layout, system_pages(), options),
          random_(seed),
          players_(5),
          clears_(clears),
          is_complete_(!options.no_reuse) {
        for (Player& player : players_) enter(player);
    }
    ~Game() { players_.clear(); }

    void play(size_t n_turns) {
        for (size_t turn = 0; turn < n_turns; ++turn) {
            Player& player = players_[below(players_.size())];
            act(player);
            cache_.check_invariants();
            for (const Player& each : players_) {
                if (n_wrong(cache_.layout(), *each.sequence, each.extra_key) != 0)
                    FAIL("a wrong mark in turn " << turn);
            }
        }
    }

    // How often a hit was compared with what was ever computed.
    size_t n_complete() const { return n_complete_; }
    size_t n_refused() const { return n_refused_; }
    CacheStats stats() const { return cache_.stats(); }

private:
    size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }

    void enter(Player& player) {
        player.extra_key = below(4) == 0;
        player.sequence.reset();
        player.sequence = std::make_unique<Sequence>(cache_, player.extra_key);
    }

    // The player becomes a child of another.
    void fork(Player& player) {
        Player& parent = players_[below(players_.size())];
        auto child = std::make_unique<Sequence>(cache_, parent.extra_key);
        const size_t n_tokens = below(parent.sequence->tokens().size() + 1);
        cache_.fork(*parent.sequence, *child, n_tokens);
        CHECK(child->tokens().size() == n_tokens);
        if (n_tokens >= parent.sequence->n_computed()) CHECK(child->n_computed() == parent.sequence->n_computed());
        player = {std::move(child), parent.extra_key};
    }

    void act(Player& player) {
        Sequence& sequence = *player.sequence;
        const size_t n_tokens = sequence.tokens().size();
        switch (below(17)) {
            case 10:
                below(2) == 0 ? cache_.end_turn(sequence) : cache_.abandon_step(sequence);
                break;
            case 0:
            case 1:
            case 2:
                append(sequence);
                break;
            case 3:
                cache_.truncate(sequence, below(n_tokens + 1));
                break;
            case 4:
                cache_.truncate(sequence, n_tokens - std::min(n_tokens, below(20)));
                break;
            case 5:
                cache_.forget_from(sequence, sequence.n_computed() - std::min<size_t>(1, sequence.n_computed()));
                break;
            case 6:
                cache_.adopt_prefix(sequence);
                break;
            case 7:
                below(3) == 0 ? cache_.release(sequence) : void();
                break;
            case 8:
                if (clears_ && below(10) == 0) below(2) == 0 ? cache_.clear() : cache_.trim();
                break;
            case 9:
                below(3) == 0 ? enter(player) : fork(player);
                break;
            default:
                step(player);
                break;
        }
    }

    // Mostly the same token, so that beginnings are often equal and often not.
    void append(Sequence& sequence) {
        if (sequence.tokens().size() > 200) cache_.truncate(sequence, below(100));
        std::vector<int32_t> tokens(1 + below(50));
        for (int32_t& token : tokens) token = below(40) == 0;
        cache_.append(sequence, tokens);
    }

    size_t adopt(Player& player) {
        Sequence& sequence = *player.sequence;
        const size_t n_reused = cache_.adopt_prefix(sequence);
        if (is_complete_ && cache_.stats().n_evicted_blocks == 0) {
            ++n_complete_;
            CHECK(sequence.n_computed() >= n_known(player));
        }
        return n_reused;
    }

    // Tokens of the longest prefix of whole blocks that somebody computed, without the last token.
    size_t n_known(const Player& player) const {
        const size_t n_tokens = player.sequence->tokens().size();
        size_t n_tokens_known = 0;
        for_each_mark(player.sequence->tokens(), player.extra_key, 0, n_tokens, [&](size_t position, uint64_t mark) {
            const bool is_next_end = position + 1 == n_tokens_known + kBlockTokens && position + 1 < n_tokens;
            if (is_next_end && known_.contains(mark)) n_tokens_known += kBlockTokens;
        });
        return n_tokens_known;
    }

    void note_known(const Player& player) {
        const size_t n_computed = player.sequence->n_computed();
        for_each_mark(player.sequence->tokens(), player.extra_key, 0, n_computed, [&](size_t position, uint64_t mark) {
            if ((position + 1) % kBlockTokens == 0) known_.insert(mark);
        });
        const CacheStats stats = cache_.stats();
        is_complete_ = is_complete_ && stats.n_evicted_blocks == 0 && stats.n_free_blocks > 5 * layout_.groups.size();
    }

    void step(Player& player) {
        Sequence& sequence = *player.sequence;
        const size_t n_reused = below(2) == 0 ? adopt(player) : 0;
        if (n_reused > 0 && below(10) == 0) {
            cache_.undo_adoption(sequence, n_reused);
            return;
        }
        const size_t n_waiting = sequence.tokens().size() - sequence.n_computed();
        CHECK((n_reused == 0 || n_waiting > 0));
        if (n_waiting == 0) return;
        const size_t n = 1 + below(std::min<size_t>(n_waiting, 60));
        const CacheStats before = cache_.stats();
        const RoomTerms terms{.promised_end = below(2) == 0 ? sequence.n_computed() + below(120) : 0,
                              .is_stalled = below(8) == 0};
        const BlockNeed need = cache_.prepare(sequence, n, terms);
        if (!need) {
            ++n_refused_;
            const CacheStats after = cache_.stats();
            CHECK(before.n_used_blocks == after.n_used_blocks);
            CHECK(before.n_cached_blocks == after.n_cached_blocks);
            const uint64_t n_kept = after.n_promised_blocks + players_.size() * layout_.groups.size();
            CHECK(need.n_available + n_kept >= after.n_cached_blocks + after.n_free_blocks);
            CHECK(need.n_available <= after.n_cached_blocks + after.n_free_blocks);
            CHECK(before.n_preemptions == after.n_preemptions);
            return;
        }
        is_complete_ = is_complete_ && cache_.stats().n_preemptions == 0;
        if (below(10) == 0) {  // a step that failed
            if (layout_.is_quantized()) cache_.abandon_step(sequence);
            return;
        }
        write(cache_.layout(), sequence, player.extra_key, n);
        cache_.commit(sequence, below(4) == 0 ? below(n + 1) : n);
        note_known(player);
    }

    KvLayout layout_;
    Cache cache_;
    std::mt19937_64 random_;
    std::vector<Player> players_;
    std::set<uint64_t> known_;  // marks of the last tokens of all blocks that were ever full
    bool clears_;
    bool is_complete_;  // nothing was ever given up
    size_t n_complete_ = 0;
    size_t n_refused_ = 0;
};

}  // namespace

TEST_CASE("random operations never show a sequence anything but its own prefix") {
    const std::vector<uint32_t> windows = GENERATE(
        as<std::vector<uint32_t>>{}, std::vector<uint32_t>{0, 0}, std::vector<uint32_t>{0, 40, 40},
        std::vector<uint32_t>{24}, std::vector<uint32_t>{1, 0, 16}, std::vector<uint32_t>{0, 0, 0, 0, 17, 17, 70, 70});
    const KvType type = GENERATE(KvType::kF32, KvType::kInt8, KvType::kInt4);
    const KvLayout layout = small_layout(windows, type);
    const bool no_reuse = GENERATE(false, true);
    const size_t blocks_a_group = GENERATE(as<size_t>{}, 6, 14, 60, 2000);
    const WhenFull when_full = GENERATE(WhenFull::kFail, WhenFull::kWait, WhenFull::kPreempt);

    CacheOptions options;
    options.budget_bytes = layout.page_bytes * layout.groups.size() * blocks_a_group;
    options.no_reuse = no_reuse;
    options.when_full = when_full;
    options.max_step_tokens = 60;
    options.prefix_hash = blocks_a_group == 14 ? &hash_of_two_bits : &hash_prefix;
    Game game(layout, options, blocks_a_group < 2000, blocks_a_group * 1000 + windows.size());
    game.play(test::kSanitized ? 800 : 2000);
    if (!no_reuse) {
        CHECK(game.stats().n_prefix_hits > 0);
        if (blocks_a_group < 2000) CHECK(game.stats().n_evicted_blocks > 0);
        if (blocks_a_group == 2000) CHECK(game.n_complete() > 20);
    }
    if (blocks_a_group == 6) {
        CHECK(game.n_refused() > 0);
        if (when_full == WhenFull::kFail) CHECK(game.stats().n_preemptions == 0);
        if (when_full == WhenFull::kPreempt) CHECK(game.stats().n_preemptions > 0);
    }
}
