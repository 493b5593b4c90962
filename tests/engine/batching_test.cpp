// Many sessions on many threads: each gets the logits it gets alone, and they really are computed together.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <thread>

#include "engine/joint_step.h"
#include "sanitized.h"
#include "test_model.h"

using namespace inlay;
using namespace inlay::test;

namespace {

struct Task {
    std::vector<int32_t> prompt;
    GenerationOptions generation;
};

// All logits that a session saw, and its tokens.
struct Trace {
    std::vector<float> logits;
    std::vector<int32_t> tokens;
};

std::vector<Task> random_tasks(size_t n, int32_t n_vocabulary) {
    std::mt19937 random(11);
    std::vector<Task> tasks(n);
    for (Task& task : tasks) {
        task.prompt.resize(std::uniform_int_distribution<size_t>(1, 150)(random));
        for (int32_t& token : task.prompt) token = std::uniform_int_distribution<int32_t>(0, n_vocabulary - 1)(random);
        task.generation = greedy(std::uniform_int_distribution<uint64_t>(1, 40)(random));
        task.generation.sampling.seed = random();
        task.generation.sampling.temperature = random() % 2 ? 1.0f : 0.0f;
    }
    return tasks;
}

Trace trace_of(const TestModel& model, const Task& task) {
    const auto session = model.session(1024);
    session->set_generation(task.generation);
    session->append(task.prompt);
    Trace trace;
    NextOutcome outcome = NextOutcome::kMore;
    while (outcome != NextOutcome::kEnd) {
        Chunk chunk;
        outcome = session->next(chunk);
        trace.tokens.insert(trace.tokens.end(), chunk.tokens.begin(), chunk.tokens.end());
        const auto logits = session->logits();
        trace.logits.insert(trace.logits.end(), logits.begin(), logits.end());
    }
    return trace;
}

bool same(const Trace& a, const Trace& b) {
    return a.tokens == b.tokens && a.logits.size() == b.logits.size() &&
           std::memcmp(a.logits.data(), b.logits.data(), a.logits.size() * sizeof(float)) == 0;
}

void check_together(const std::filesystem::path& path, ModelOptions options) {
    CAPTURE(path.filename().string());
    options.no_reuse = false;
    options.max_step_tokens = 64;
    const size_t n_tasks = kSlowed ? 12 : 48;
    std::vector<Task> tasks;
    std::vector<Trace> alone;
    {
        ModelOptions apart = options;
        apart.no_reuse = true;
        const TestModel model(path, apart);
        tasks = random_tasks(n_tasks, static_cast<int32_t>(model.engine->n_vocabulary()));
        for (const Task& task : tasks) alone.push_back(trace_of(model, task));
    }
    const TestModel model(path, options);
    std::vector<Trace> together(n_tasks);
    std::atomic<size_t> next{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([&] {
            for (size_t task = next++; task < n_tasks; task = next++) together[task] = trace_of(model, tasks[task]);
        });
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < n_tasks; ++i) CHECK(same(together[i], alone[i]));
    model.cache->cache().check_invariants();
}

// Sessions of a step, on average, while n threads generate.
double mean_batch(const TestModel& model, size_t n_threads, uint64_t n_tokens) {
    std::vector<std::unique_ptr<Session>> sessions;
    for (size_t i = 0; i < n_threads; ++i) {
        sessions.push_back(model.session(1024));
        sessions.back()->set_generation(greedy(n_tokens));
        sessions.back()->append(std::vector<int32_t>{static_cast<int32_t>(i) + 1, 2, 3});
    }
    const uint64_t n_before = model.engine->scheduler().n_steps();
    std::vector<std::thread> threads;
    for (const auto& session : sessions)
        threads.emplace_back([&session] {
            Chunk chunk;
            while (session->next(chunk) != NextOutcome::kEnd) {
            }
        });
    for (std::thread& thread : threads) thread.join();
    uint64_t n_parts = 0;
    for (const auto& session : sessions) n_parts += session->stats().n_steps;
    return static_cast<double>(n_parts) / static_cast<double>(model.engine->scheduler().n_steps() - n_before);
}

}  // namespace

TEST_CASE("a session beside seven others, who join and leave at any step, computes what it computes alone") {
    ModelOptions options;
    check_together(data_dir() / "tiny/llama/llama.f16.gguf", options);
    check_together(data_dir() / "tiny/gemma3_text/gemma3_text.f32.gguf", options);
    options.compute = ComputeMode::kAuto;
    options.kv_type = KvType::kF16;
    check_together(data_dir() / "quant_models/q_Q4_K_M.gguf", options);
    for (const KvType type : {KvType::kInt8, KvType::kInt4}) {
        options.kv_type = type;
        check_together(data_dir() / "quant_models/q_Q4_1.gguf", options);
        check_together(data_dir() / "tiny/gemma3_text/gemma3_text.f32.gguf", options);
    }
}

TEST_CASE("threads that generate at the same time are computed together") {
    const auto path = model_file("smollm2-135m-instruct-q4_1.gguf");
    if (path.empty() || kSlowed) INLAY_SKIP("needs the small model, at its own speed");
    ModelOptions options;
    options.compute = ComputeMode::kAuto;
    options.kv_type = KvType::kF16;
    const TestModel model(path, options);
    // Other programs on the machine can only part the threads, so the best of some attempts counts.
    const auto best_mean_batch = [&](size_t n_threads, double wanted) {
        double best = 0;
        for (int attempt = 0; attempt < 8 && best < wanted; ++attempt)
            best = std::max(best, mean_batch(model, n_threads, 100));
        return best;
    };
    CHECK(mean_batch(model, 1, 20) == 1.0);
    CHECK(best_mean_batch(8, 7.5) >= 7.5);
    CHECK(best_mean_batch(2, 1.9) >= 1.9);
}

TEST_CASE("sessions that begin together on one prompt compute it once") {
    ModelOptions options;
    options.no_reuse = false;
    options.max_step_tokens = 256;
    const TestModel model(data_dir() / "tiny/llama/llama.f16.gguf", options);
    std::vector<int32_t> prompt(1024 + 5);
    for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<int32_t>(i * i % 384);
    std::vector<std::unique_ptr<Session>> sessions;
    std::vector<Session*> stepped;
    for (int32_t i = 0; i < 8; ++i) {
        sessions.push_back(model.session(2000));
        sessions.back()->append(prompt);
        sessions.back()->append(std::vector<int32_t>{i, i + 1, i + 2});
        stepped.push_back(sessions.back().get());
    }
    std::vector<NextResult> results(8);
    const auto waits = [](const NextResult& result) { return result.outcome == NextOutcome::kMore; };
    do {
        results.assign(8, {});
        step_together(stepped, results);
        for (const NextResult& result : results) REQUIRE(!result.failure);
    } while (std::all_of(results.begin(), results.end(), waits));
    while (std::any_of(results.begin(), results.end(), waits)) {
        results.assign(8, {});
        step_together(stepped, results);
    }
    uint64_t n_prompt_computed = 0;
    for (const auto& session : sessions) {
        const SessionStats stats = session->stats();
        n_prompt_computed += stats.n_computed_tokens - (stats.n_generated_tokens - 1);
        CHECK(stats.n_prompt_tokens == prompt.size() + 3);
    }
    // The first computes 1,032 tokens, the seven others what follows their last whole block.
    CHECK(n_prompt_computed == 1032 + 7 * 8);

    const auto alone = model.session(2000);
    alone->append(sessions[3]->tokens().first(1032));
    Chunk chunk;
    while (alone->next(chunk) == NextOutcome::kMore) {
    }
    CHECK(chunk.tokens[0] == sessions[3]->tokens()[1032]);
    model.cache->cache().check_invariants();
}
