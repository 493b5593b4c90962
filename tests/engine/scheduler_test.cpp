// One step for many: what leaves it when a session is cancelled, who takes over, who goes first.
#include <algorithm>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <cstring>
#include <random>
#include <thread>

#include "backend/cpu/cpu_backend.h"
#include "base/workers.h"
#include "engine/scheduler.h"
#include "model/architectures/architectures.h"
#include "test_model.h"
#include "watched_backend.h"

using namespace inlay;
using namespace inlay::test;

namespace {

// A model whose layers can be watched, and a cache for its sequences.
struct WatchedModel {
    FileSource source;
    GgufFile file = GgufFile::read(source);
    Workers workers{2};
    CpuBackend cpu{kernels::fastest(), workers, ComputeMode::kF32, system_pages()};
    WatchedBackend backend{cpu};
    Decoder decoder;
    Scheduler scheduler;
    Cache cache;

    explicit WatchedModel(uint32_t max_step_tokens = 512)
        : source((data_dir() / "tiny/llama/llama.f16.gguf").string()),
          decoder(make_model_spec(file, source), file, source, backend, max_step_tokens, Backend::Loading{}),
          scheduler(decoder, max_step_tokens),
          cache(kv_layout_of(decoder.spec(), KvType::kF32, KvType::kF32), system_pages(),
                {.budget_bytes = uint64_t{64} << 20, .no_reuse = true}) {}

    uint32_t last_layer() const { return decoder.n_layers() - 1; }
};

// What a session keeps for its requests.
struct Asker {
    WatchedModel& model;
    Sequence sequence;
    StepSeat seat;
    std::atomic<bool> cancelled{false};
    std::vector<float> logits;

    explicit Asker(WatchedModel& owner) : model(owner), sequence(owner.cache) {
        logits.resize(owner.decoder.spec().n_vocabulary);
    }
    ~Asker() { model.scheduler.leave(seat); }
    Asker(const Asker&) = delete;
    Asker& operator=(const Asker&) = delete;

    void append(const std::vector<int32_t>& tokens) { model.cache.append(sequence, tokens); }

    StepRequest request() {
        StepRequest request;
        request.cache = &model.cache;
        request.sequence = &sequence;
        request.seat = &seat;
        request.cancelled = &cancelled;
        request.n_logits = 1;
        request.logits = logits.data();
        return request;
    }

    StepOutcome run() {
        StepRequest one = request();
        model.scheduler.run({&one, 1});
        return one.outcome;
    }
};

std::vector<int32_t> prompt_of(size_t n, int32_t first) {
    std::vector<int32_t> tokens(n);
    for (size_t i = 0; i < n; ++i) tokens[i] = static_cast<int32_t>((static_cast<size_t>(first) + 7 * i) % 384);
    return tokens;
}

// The logits after a prompt that nothing disturbed.
std::vector<float> logits_alone(const std::vector<int32_t>& prompt) {
    WatchedModel model;
    Asker asker(model);
    asker.append(prompt);
    REQUIRE(asker.run() == StepOutcome::kDone);
    return asker.logits;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void wait_until_waiting(const Scheduler& scheduler, size_t n) {
    while (scheduler.n_waiting() != n) std::this_thread::yield();
}

}  // namespace

TEST_CASE("no layer begins after the one in which a session was cancelled") {
    const auto prompt = prompt_of(90, 3);
    WatchedModel model;
    REQUIRE(model.last_layer() >= 1);
    for (uint32_t at = 0; at < model.last_layer(); ++at) {
        Asker asker(model);
        asker.append(prompt);
        uint32_t last_begun = 0;
        model.backend.on_layer = [&](uint32_t layer, size_t) {
            last_begun = layer;
            if (layer == at) asker.cancelled = true;
        };
        CHECK(asker.run() == StepOutcome::kCancelled);
        CHECK(last_begun == at);
        CHECK(asker.sequence.n_computed() == 0);

        asker.cancelled = false;
        model.backend.on_layer = nullptr;
        CHECK(asker.run() == StepOutcome::kDone);
        CHECK(same_bits(asker.logits, logits_alone(prompt)));
        model.cache.check_invariants();
    }
}

TEST_CASE("a prompt of 4,000 tokens ends within the layer in which another thread cancels it") {
    WatchedModel model(4096);
    Asker asker(model);
    asker.append(prompt_of(4000, 1));
    uint32_t n_layers = 0;
    model.backend.on_layer = [&](uint32_t, size_t) {
        if (n_layers++ == 0) std::thread([&] { asker.cancelled = true; }).join();
    };
    CHECK(asker.run() == StepOutcome::kCancelled);
    CHECK(n_layers == 1);
}

TEST_CASE("a cancelled session's rows leave the step and the others' logits stay") {
    const std::vector<int32_t> prompts[] = {prompt_of(20, 1), prompt_of(33, 2), prompt_of(50, 3)};
    for (size_t leaver = 0; leaver < 3; ++leaver) {
        WatchedModel model;
        Asker askers[] = {Asker(model), Asker(model), Asker(model)};
        std::vector<StepRequest> requests;
        for (size_t i = 0; i < 3; ++i) {
            askers[i].append(prompts[i]);
            requests.push_back(askers[i].request());
        }
        std::vector<size_t> rows;
        model.backend.on_layer = [&](uint32_t layer, size_t n_rows) {
            rows.push_back(n_rows);
            if (layer == 0) askers[leaver].cancelled = true;
        };
        model.scheduler.run(requests);
        REQUIRE(rows.size() == model.decoder.n_layers());
        CHECK(rows[0] == 103);
        CHECK(rows[1] == 103 - prompts[leaver].size());
        for (size_t i = 0; i < 3; ++i) {
            CHECK(requests[i].outcome == (i == leaver ? StepOutcome::kCancelled : StepOutcome::kDone));
            if (i != leaver) CHECK(same_bits(askers[i].logits, logits_alone(prompts[i])));
        }
        model.cache.check_invariants();
    }
}

TEST_CASE("a cancelled leader hands its step to a thread that waits for it") {
    const auto prompt = prompt_of(40, 5);
    const auto other_prompt = prompt_of(25, 6);
    WatchedModel model;
    Asker first(model), leader(model), follower(model);
    first.append({1});
    leader.append(prompt);
    follower.append(other_prompt);

    // While the first step runs, two threads queue up; the one that came first will lead the second step.
    std::thread leader_thread, follower_thread;
    StepOutcome leader_outcome = StepOutcome::kNotServed, follower_outcome = StepOutcome::kNotServed;
    std::thread::id computing_thread;
    bool leader_led = false;
    std::vector<size_t> rows;
    bool queued = false;
    model.backend.on_layer = [&](uint32_t layer, size_t n_rows) {
        if (!queued) {
            queued = true;
            leader_thread = std::thread([&] { leader_outcome = leader.run(); });
            wait_until_waiting(model.scheduler, 1);
            follower_thread = std::thread([&] { follower_outcome = follower.run(); });
            wait_until_waiting(model.scheduler, 2);
        }
        if (n_rows < 2) return;
        rows.push_back(n_rows);
        computing_thread = std::this_thread::get_id();
        if (layer == 0) {
            leader_led = computing_thread == leader_thread.get_id();
            leader.cancelled = true;
        }
    };
    CHECK(first.run() == StepOutcome::kDone);
    const std::thread::id follower_id = follower_thread.get_id();
    leader_thread.join();
    follower_thread.join();
    CHECK(leader_led);
    CHECK(leader_outcome == StepOutcome::kCancelled);
    CHECK(follower_outcome == StepOutcome::kDone);
    REQUIRE(rows.size() == model.decoder.n_layers());
    CHECK(rows.front() == prompt.size() + other_prompt.size());
    CHECK(rows.back() == other_prompt.size());
    CHECK(computing_thread == follower_id);
    CHECK(same_bits(follower.logits, logits_alone(other_prompt)));

    leader.cancelled = false;
    model.backend.on_layer = nullptr;
    CHECK(leader.run() == StepOutcome::kDone);
    CHECK(same_bits(leader.logits, logits_alone(prompt)));
    CHECK(model.scheduler.n_waiting() == 0);
}

TEST_CASE("a thread that waits for a step is cancelled within a layer") {
    WatchedModel model;
    Asker busy(model), waiting(model);
    busy.append(prompt_of(10, 1));
    waiting.append(prompt_of(10, 2));
    std::thread thread;
    StepOutcome outcome = StepOutcome::kNotServed;
    uint32_t layers_until_gone = 0;
    model.backend.on_layer = [&](uint32_t layer, size_t) {
        if (layer == 0) {
            thread = std::thread([&] { outcome = waiting.run(); });
            wait_until_waiting(model.scheduler, 1);
            waiting.cancelled = true;
        } else if (layer == 1) {
            layers_until_gone = model.scheduler.n_waiting() == 0 ? 1 : 2;
        }
    };
    CHECK(busy.run() == StepOutcome::kDone);
    thread.join();
    CHECK(outcome == StepOutcome::kCancelled);
    CHECK(layers_until_gone == 1);
}

TEST_CASE("a step holds as many tokens as the budget, and a long prompt leaves room for single tokens") {
    WatchedModel model(8);
    Asker prompt(model), one(model), two(model);
    prompt.append(prompt_of(100, 1));
    one.append({5});
    two.append({6});
    StepRequest requests[] = {prompt.request(), one.request(), two.request()};
    size_t n_rows = 0;
    model.backend.on_layer = [&](uint32_t, size_t n) { n_rows = n; };
    model.scheduler.run(requests);
    CHECK(n_rows == 8);
    CHECK(requests[0].n_computed == 6);
    CHECK(requests[1].outcome == StepOutcome::kDone);
    CHECK(requests[2].outcome == StepOutcome::kDone);
}

TEST_CASE("whoever a step had no room for is in the next one") {
    WatchedModel model(8);
    SECTION("single tokens") {
        std::vector<std::unique_ptr<Asker>> askers;
        for (int32_t i = 0; i < 24; ++i) {
            askers.push_back(std::make_unique<Asker>(model));
            askers.back()->append({i});
        }
        std::vector<size_t> n_served(24);
        for (int step = 0; step < 9; ++step) {
            std::vector<StepRequest> requests;
            for (const auto& asker : askers) requests.push_back(asker->request());
            model.scheduler.run(requests);
            for (size_t i = 0; i < 24; ++i) {
                if (requests[i].outcome != StepOutcome::kDone) continue;
                ++n_served[i];
                askers[i]->append({1});
            }
        }
        CHECK(n_served == std::vector<size_t>(24, 3));
    }
    SECTION("tokens that must be in one step, beside a stream of single ones") {
        Asker whole(model), stream(model);
        whole.append(prompt_of(8, 1));
        stream.append({2});
        bool done = false;
        for (int step = 0; step < 2; ++step) {
            StepRequest requests[] = {whole.request(), stream.request()};
            requests[0].in_one_step = true;
            model.scheduler.run(requests);
            if (requests[1].outcome == StepOutcome::kDone) stream.append({3});
            done = requests[0].outcome == StepOutcome::kDone;
            CHECK((done ? requests[0].n_computed == 8 : requests[0].n_computed == 0));
        }
        CHECK(done);
    }
}

TEST_CASE("every session that wants a token runs within twice the steps that all need, prompts beside them or not") {
    constexpr size_t kSessions = 100, kBatch = 16;
    WatchedModel model(kBatch);
    std::vector<std::unique_ptr<Asker>> askers;
    std::mt19937 random(3);
    for (size_t i = 0; i < kSessions; ++i) {
        askers.push_back(std::make_unique<Asker>(model));
        askers.back()->append({static_cast<int32_t>(i)});
    }
    std::vector<size_t> n_passed(kSessions, 0), n_steps_taken(kSessions, 0);
    size_t longest = 0;
    for (int step = 0; step < 400; ++step) {
        std::vector<StepRequest> requests;
        for (const auto& asker : askers) requests.push_back(asker->request());
        std::shuffle(requests.begin(), requests.end(), random);
        model.scheduler.run(requests);
        for (const StepRequest& request : requests) {
            const auto asker = std::find_if(askers.begin(), askers.end(),
                                            [&](const auto& each) { return &each->sequence == request.sequence; });
            const auto i = static_cast<size_t>(asker - askers.begin());
            n_passed[i] = request.outcome == StepOutcome::kDone ? 0 : n_passed[i] + 1;
            longest = std::max(longest, n_passed[i]);
            if (request.outcome != StepOutcome::kDone) continue;
            ++n_steps_taken[i];
            if ((*asker)->sequence.n_computed() < (*asker)->sequence.tokens().size()) continue;
            if ((*asker)->sequence.tokens().size() > 200) (*asker)->model.cache.truncate((*asker)->sequence, 1);
            (*asker)->append(prompt_of(random() % 8 == 0 ? 1 + random() % 60 : 1, 5));
        }
    }
    CHECK(longest < 2 * ((kSessions + kBatch - 1) / kBatch));
    CHECK(*std::min_element(n_steps_taken.begin(), n_steps_taken.end()) > 40);
}

TEST_CASE("one session without room in its cache fails alone") {
    WatchedModel model;
    Cache small(kv_layout_of(model.decoder.spec(), KvType::kF32, KvType::kF32), system_pages(),
                {.budget_bytes = model.cache.stats().block_bytes, .no_reuse = true});
    Asker fits(model), does_not(model);
    Sequence too_long(small);
    small.append(too_long, prompt_of(17, 1));
    fits.append(prompt_of(17, 1));
    StepRequest requests[] = {does_not.request(), fits.request()};
    requests[0].cache = &small;
    requests[0].sequence = &too_long;
    model.scheduler.run(requests);
    CHECK(requests[0].outcome == StepOutcome::kCacheFull);
    CHECK(requests[0].need.n_needed == 2);
    CHECK(requests[0].need.n_available == 1);
    CHECK(requests[1].outcome == StepOutcome::kDone);
    CHECK(too_long.n_computed() == 0);
}
