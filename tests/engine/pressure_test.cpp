// Many more sessions than the cache holds, from many threads, with everything that a host may do to them at any moment.
// Each text must be the one that the session writes alone.
//
// INLAY_PRESSURE_SECONDS: how long each case goes on with new rounds; one round by default.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "engine/joint_step.h"
#include "sanitized.h"
#include "test_model.h"

using namespace inlay;
using namespace inlay::test;

namespace {

using Random = std::mt19937_64;

size_t below(Random& random, size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
}

// What a host does with one session, turn by turn, decided beforehand.
struct Turn {
    double kept = 1;  // of the tokens so far, the rest is cut
    std::vector<int32_t> appended;
    GenerationOptions generation;
    size_t fork_after = SIZE_MAX;  // new tokens; the child goes on from there as another text
    double fork_kept = 1;          // of the tokens by then, that the child has
};

struct Plan {
    std::vector<Turn> turns;
    uint64_t reserve_tokens = 0;
    size_t dropped_after = SIZE_MAX;  // new tokens of the last turn, when the host loses interest
};

std::vector<int32_t> random_tokens(Random& random, size_t n, size_t n_vocabulary) {
    std::vector<int32_t> tokens(n);
    for (int32_t& token : tokens) token = static_cast<int32_t>(below(random, n_vocabulary));
    return tokens;
}

Plan random_plan(Random& random, size_t n_vocabulary) {
    Plan plan;
    const size_t n_turns = 1 + below(random, 3);
    for (size_t i = 0; i < n_turns; ++i) {
        Turn turn;
        if (i > 0 && below(random, 2) == 0) turn.kept = std::uniform_real_distribution<>(0, 1)(random);
        // Lengths from 2 to 300, the short ones as likely as the long; often the same beginnings.
        const auto n =
            static_cast<size_t>(std::exp(std::uniform_real_distribution<>(std::log(2), std::log(300))(random)));
        if (i == 0 && below(random, 2) == 0) {
            Random common(below(random, 4));
            turn.appended = random_tokens(common, 150, n_vocabulary);
        }
        const auto own = random_tokens(random, n, n_vocabulary);
        turn.appended.insert(turn.appended.end(), own.begin(), own.end());
        turn.generation = greedy(1 + below(random, 30));
        turn.generation.sampling.seed = random();
        turn.generation.sampling.temperature = below(random, 2) == 0 ? 0.0f : 1.0f;
        if (below(random, 4) == 0) turn.fork_after = below(random, turn.generation.max_new_tokens + 1);
        if (below(random, 2) == 0) turn.fork_kept = std::uniform_real_distribution<>(0, 1)(random);
        plan.turns.push_back(turn);
    }
    plan.reserve_tokens = below(random, 2) == 0 ? 0 : 30;
    if (below(random, 8) == 0) plan.dropped_after = 1 + below(random, 10);
    return plan;
}

using Texts = std::vector<std::vector<int32_t>>;  // one for each turn

// One session on its way through its plan.
class Player {
public:
    Player(std::shared_ptr<Session> session, const Plan& plan) : session_(std::move(session)), plan_(plan) {
        begin_turn();
    }

    Session& session() const { return *session_; }
    const std::shared_ptr<Session>& shared_session() const { return session_; }
    bool is_over() const { return is_over_; }
    const Texts& texts() const { return texts_; }
    // A child that was made since the last call.
    std::unique_ptr<Player> take_child() { return std::move(child_); }

    void take(NextOutcome outcome, const Chunk& chunk) {
        auto& text = texts_.back();
        text.insert(text.end(), chunk.tokens.begin(), chunk.tokens.end());
        const bool is_last = texts_.size() == plan_.turns.size();
        fork_when_due();
        if (is_last && text.size() >= plan_.dropped_after)
            is_over_ = true;
        else if (outcome == NextOutcome::kEnd && chunk.finish != FinishReason::kCancelled)
            is_last ? void(is_over_ = true) : begin_turn();
    }

private:
    const Turn& turn() const { return plan_.turns[texts_.size() - 1]; }
    size_t part_of_tokens(double part) const {
        return static_cast<size_t>(part * static_cast<double>(session_->tokens().size()));
    }

    void begin_turn() {
        texts_.emplace_back();
        if (turn().kept < 1) session_->truncate(part_of_tokens(turn().kept));
        session_->set_generation(turn().generation);
        session_->append(turn().appended);
        has_forked_ = false;
        fork_when_due();
    }

    void fork_when_due() {
        if (has_forked_ || texts_.back().size() < turn().fork_after) return;
        has_forked_ = true;
        if (session_->tokens().empty()) return;
        Plan plan;
        plan.turns.push_back({.kept = 1, .appended = {7}, .generation = greedy(12)});
        child_ = std::make_unique<Player>(session_->fork(std::max<size_t>(1, part_of_tokens(turn().fork_kept))), plan);
    }

    std::shared_ptr<Session> session_;
    Plan plan_;
    Texts texts_;
    std::unique_ptr<Player> child_;
    bool has_forked_ = false;
    bool is_over_ = false;
};

std::shared_ptr<Session> session_for(const TestModel& model, const Plan& plan) {
    return std::make_shared<Session>(model.cache,
                                     SessionOptions{.context_tokens = 2048, .reserve_tokens = plan.reserve_tokens});
}

// All texts of a plan, its children's included, undisturbed.
std::vector<Texts> texts_alone(const TestModel& model, const Plan& plan) {
    std::vector<Texts> all;
    std::deque<std::unique_ptr<Player>> players;
    players.push_back(std::make_unique<Player>(session_for(model, plan), plan));
    for (; !players.empty(); players.pop_front()) {
        Player& player = *players.front();
        while (!player.is_over()) {
            if (auto child = player.take_child()) players.push_back(std::move(child));
            Chunk chunk;
            const NextOutcome outcome = player.session().next(chunk);
            player.take(outcome, chunk);
        }
        if (auto child = player.take_child()) players.push_back(std::move(child));
        all.push_back(player.texts());
    }
    return all;
}

// The sessions of all threads, for one that cancels at random.
class Crowd {
public:
    void enter(std::shared_ptr<Session> session) {
        const std::lock_guard lock(mutex_);
        sessions_[session.get()] = session;
    }
    void leave(const Session& session) {
        const std::lock_guard lock(mutex_);
        sessions_.erase(&session);
    }
    // Each session as often, however many there are.
    void cancel_one_of(size_t n, Random& random) {
        const std::lock_guard lock(mutex_);
        const size_t chosen = below(random, n);
        if (chosen < sessions_.size()) std::next(sessions_.begin(), static_cast<ptrdiff_t>(chosen))->second->cancel();
    }

private:
    std::mutex mutex_;
    std::map<const Session*, std::shared_ptr<Session>> sessions_;
};

struct Round {
    const TestModel& model;
    const std::vector<Plan>& plans;
    const std::vector<std::vector<Texts>>& expected;
    std::atomic<size_t> next_plan{0};
    std::atomic<size_t> n_wrong{0};
    std::atomic<size_t> n_broken{0};  // times that an invariant did not hold
    std::atomic<uint64_t> n_computed{0};
    std::atomic<uint64_t> n_recomputed{0};
    std::atomic<uint64_t> last_checked{0};  // step
    Crowd crowd{};
};

// A player and what is expected of it, with the children that come of it.
struct Seat {
    std::unique_ptr<Player> player;
    size_t plan = 0;
    size_t child = 0;  // 0: the session of the plan itself
};

// Plays a share of the plans on one thread: `n_at_once` sessions and their children at a time, one alone through next,
// several in joint steps.
class Host {
public:
    Host(Round& round, size_t n_at_once) : round_(round), n_at_once_(n_at_once) {}

    void play() {
        for (;;) {
            while (seats_.size() < n_at_once_ && enter_next_plan()) {
            }
            if (seats_.empty()) return;
            seats_.size() == 1 ? play_one() : play_all();
            leave_over();
        }
    }

private:
    bool enter_next_plan() {
        const size_t plan = round_.next_plan++;
        if (plan >= round_.plans.size()) return false;
        n_children_[plan] = 0;
        enter(std::make_unique<Player>(session_for(round_.model, round_.plans[plan]), round_.plans[plan]), plan);
        return true;
    }

    void enter(std::unique_ptr<Player> player, size_t plan) {
        round_.crowd.enter(player->shared_session());
        seats_.push_back({std::move(player), plan, n_children_[plan]++});
        take_child(seats_.size() - 1);
    }

    void take_child(size_t seat) {
        const size_t plan = seats_[seat].plan;
        if (auto child = seats_[seat].player->take_child()) enter(std::move(child), plan);
    }

    void play_one() {
        Player& player = *seats_.front().player;
        Chunk chunk;
        const NextOutcome outcome = player.session().next(chunk);
        player.take(outcome, chunk);
        take_child(0);
        check();
    }

    void play_all() {
        std::vector<Session*> sessions;
        std::vector<NextResult> results(seats_.size());
        for (const Seat& seat : seats_) sessions.push_back(&seat.player->session());
        step_together(sessions, results);
        for (size_t i = 0; i < results.size(); ++i) {
            if (results[i].failure) std::rethrow_exception(results[i].failure);
            seats_[i].player->take(results[i].outcome, results[i].chunk);
            take_child(i);
        }
        check();
    }

    // Once after each step.
    void check() {
        const uint64_t step = round_.model.engine->scheduler().n_steps();
        if (round_.last_checked.exchange(step) == step) return;
        try {
            round_.model.cache->cache().check_invariants();
        } catch (const std::exception&) {
            ++round_.n_broken;
        }
    }

    void leave_over() {
        std::erase_if(seats_, [&](const Seat& seat) {
            if (!seat.player->is_over()) return false;
            round_.crowd.leave(seat.player->session());
            round_.n_computed += seat.player->session().stats().n_computed_tokens;
            round_.n_recomputed += seat.player->session().stats().n_recomputed_tokens;
            round_.n_wrong += seat.player->texts() != round_.expected[seat.plan][seat.child];
            return true;
        });
    }

    Round& round_;
    size_t n_at_once_;
    std::deque<Seat> seats_;
    std::map<size_t, size_t> n_children_;
};

constexpr size_t kPlans = kSanitized ? 50 : 1000;
constexpr size_t kThreads = 64;
constexpr size_t kAtOnce = 16;

double seconds_to_go_on() {
    const char* seconds = std::getenv("INLAY_PRESSURE_SECONDS");
    return seconds ? std::atof(seconds) : 0;
}

uint64_t bytes_for_a_tenth(const TestModel& alone, const std::vector<std::vector<Texts>>& texts,
                           const std::vector<Plan>& plans) {
    uint64_t n_tokens = 0;
    for (size_t i = 0; i < plans.size(); ++i) {
        for (const Turn& turn : plans[i].turns) n_tokens += turn.appended.size();
        for (const Texts& each : texts[i])
            for (const auto& text : each) n_tokens += text.size();
    }
    const KvLayout& layout = alone.cache->cache().layout();
    return std::max(layout.blocks_for(n_tokens / 10, 64), layout.blocks_for(1500, 64)) * layout.page_bytes;
}

struct Case {
    const char* model;
    WhenFull when_full;
    KvType kv_type = KvType::kF32;
};

void play_round(const Case& which, uint64_t seed) {
    Random random(seed);
    const std::filesystem::path path = data_dir() / "tiny" / which.model;
    ModelOptions options;
    options.kv_type = which.kv_type;
    options.max_step_tokens = 64;
    const TestModel alone(path, options);
    std::vector<Plan> plans;
    std::vector<std::vector<Texts>> expected;
    for (size_t i = 0; i < kPlans; ++i) {
        plans.push_back(random_plan(random, alone.engine->n_vocabulary()));
        expected.push_back(texts_alone(alone, plans.back()));
    }

    options.no_reuse = false;
    options.when_full = which.when_full;
    options.cache_bytes = bytes_for_a_tenth(alone, expected, plans);
    const TestModel model(path, options);
    Round round{model, plans, expected};
    std::vector<std::thread> hosts;
    std::atomic<bool> is_over{false};
    std::thread canceller([&] {
        for (Random moments(seed); !is_over; std::this_thread::sleep_for(std::chrono::microseconds(300)))
            round.crowd.cancel_one_of(kThreads * kAtOnce, moments);
    });
    for (size_t i = 0; i < kThreads; ++i) hosts.emplace_back([&, i] { Host(round, i % 2 == 0 ? 1 : kAtOnce).play(); });
    for (std::thread& host : hosts) host.join();
    is_over = true;
    canceller.join();

    const CacheStats stats = model.cache->cache().stats();
    WARN(plans.size() << " sessions, " << stats.n_blocks << " blocks, " << model.engine->scheduler().n_steps()
                      << " steps, " << round.n_computed << " tokens computed, " << round.n_recomputed
                      << " of them again, " << stats.n_reused_tokens << " reused, blocks taken from sessions "
                      << stats.n_preemptions << " times");
    CHECK(round.n_wrong == 0);
    CHECK(round.n_broken == 0);
    CHECK(stats.n_used_blocks == 0);
    CHECK(stats.n_promised_blocks == 0);
    CHECK(stats.n_blocks * stats.block_bytes <= stats.budget_bytes);
}

}  // namespace

// Both policies, without and with windows, exact and quantised; all pairs when there is time.
TEST_CASE("a thousand sessions in a cache for a hundred write what they write alone") {
    constexpr const char* kLlama = "llama/llama.f16.gguf";
    constexpr const char* kWindows = "gemma3_text/gemma3_text.f32.gguf";
    std::vector<Case> cases = {{kLlama, WhenFull::kWait}, {kWindows, WhenFull::kPreempt, KvType::kInt4}};
    if (seconds_to_go_on() > 0) {
        cases.push_back({kLlama, WhenFull::kPreempt, KvType::kInt4});
        cases.push_back({kWindows, WhenFull::kPreempt});
        cases.push_back({kWindows, WhenFull::kWait, KvType::kInt8});
    }
    const auto begin = std::chrono::steady_clock::now();
    uint64_t seed = 1;
    do {
        for (const Case& each : cases) {
            CAPTURE(each.model, static_cast<int>(each.kv_type), seed);
            play_round(each, seed);
        }
        ++seed;
    } while (std::chrono::steady_clock::now() - begin < std::chrono::duration<double>(seconds_to_go_on()));
}
