// inlay bench --parallel: many sessions side by side, stepped by one thread, as a server would.
//
// Each repetition begins with an empty cache and other random tokens. Prompts share their first tokens when asked, so
// that what is measured then is the sharing; with a warm prefix another session has computed it before. The time to
// the first token of all, tokens per second after it, and tokens per second of all that time.
#include <chrono>
#include <random>

#include "bench.h"
#include "command.h"

namespace cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Measured {
    std::vector<double> prefill, decode;  // tokens per second of all sessions together
    std::vector<double> generated;        // tokens per second, the time of the prompts included
    std::vector<double> first_token_ms;   // until every session had its first
    std::uint64_t n_reused = 0;
    std::uint64_t n_computed = 0;
    std::uint64_t n_parts = 0;  // sessions in steps
    std::uint64_t n_steps = 0;
};

class ParallelBench {
public:
    ParallelBench(const BenchArguments& arguments, const inlay::Engine& engine)
        : arguments_(arguments),
          engine_(engine),
          any_token_(0, static_cast<std::int32_t>(engine.info().n_vocabulary) - 1) {}

    void repeat(const Interrupt& interrupt, Measured& measured) {
        const inlay::Cache cache = arguments_.cache.create(engine_, n_tokens_of_session(), 0, n_sequences());
        begin_sessions(cache);
        const std::uint64_t n_steps_before = engine_.info().n_steps;
        const Clock::time_point start = Clock::now();
        std::size_t n_first = 0;
        while (n_first < sessions_.size()) n_first += step(interrupt);
        const double prefill_seconds = seconds_since(start);
        const std::uint64_t n_before = n_generated();
        const Clock::time_point all_began = Clock::now();
        while (n_generated() < sessions_.size() * std::uint64_t{arguments_.n_generate}) step(interrupt);
        const double decode_seconds = seconds_since(all_began);

        const auto n_prompts = static_cast<double>(sessions_.size() * std::uint64_t{arguments_.n_prompt});
        measured.prefill.push_back(n_prompts / prefill_seconds);
        measured.first_token_ms.push_back(1e3 * prefill_seconds);
        measured.decode.push_back(static_cast<double>(n_generated() - n_before) / decode_seconds);
        measured.generated.push_back(static_cast<double>(n_generated()) / (prefill_seconds + decode_seconds));
        measured.n_steps += engine_.info().n_steps - n_steps_before;
        for (const inlay::Session& session : sessions_) {
            const inlay::SessionStats stats = session.stats();
            measured.n_reused += stats.n_reused_tokens;
            measured.n_computed += stats.n_computed_tokens;
            measured.n_parts += stats.n_steps;
        }
        sessions_.clear();
    }

private:
    std::uint32_t n_tokens_of_session() const { return arguments_.n_prompt + arguments_.n_generate + 1; }
    // Room for all, as if nothing were shared.
    std::uint64_t n_sequences() const { return arguments_.n_parallel + (arguments_.warm_prefix ? 1u : 0u); }

    std::vector<std::int32_t> random_tokens(std::size_t n) {
        std::vector<std::int32_t> tokens(n);
        for (std::int32_t& token : tokens) token = any_token_(random_);
        return tokens;
    }

    void begin_sessions(const inlay::Cache& cache) {
        inlay::SessionOptions options;
        options.context_tokens = n_tokens_of_session();
        inlay::GenerationOptions generation;
        generation.flags = INLAY_GENERATION_IGNORE_END;
        generation.max_new_tokens = arguments_.n_generate;
        const std::vector<std::int32_t> shared = random_tokens(arguments_.n_shared_prefix);
        if (arguments_.warm_prefix) compute(cache, options, shared);
        for (std::uint32_t i = 0; i < arguments_.n_parallel; ++i) {
            inlay::Session& session = sessions_.emplace_back(cache, options);
            session.set_generation(generation);
            session.append(shared);
            session.append(random_tokens(arguments_.n_prompt - arguments_.n_shared_prefix));
        }
    }

    // By a session that leaves; its blocks stay to be found.
    void compute(const inlay::Cache& cache, const inlay::SessionOptions& options,
                 const std::vector<std::int32_t>& tokens) {
        inlay::Session session(cache, options);
        const std::size_t n_step = engine_.info().max_step_tokens;
        for (std::size_t start = 0; start < tokens.size(); start += n_step) {
            const std::size_t n = std::min(n_step, tokens.size() - start);
            session.forward(tokens.data() + start, n, n);
        }
    }

    // One step of all that have not ended. Returns how many sessions had their first token in it.
    std::size_t step(const Interrupt& interrupt) {
        interrupt.check("the measurement is not complete");
        std::vector<inlay::Session*> running;
        for (inlay::Session& session : sessions_)
            if (session.stats().n_generated_tokens < arguments_.n_generate) running.push_back(&session);
        const std::vector<inlay::StepResult> results = inlay::step(running);
        std::size_t n_first = 0;
        for (std::size_t i = 0; i < results.size(); ++i) {
            if (results[i].status < 0) throw inlay::Error(results[i].status, results[i].error.c_str());
            n_first += results[i].chunk.size() > 0 && running[i]->stats().n_generated_tokens == 1;
        }
        return n_first;
    }

    std::uint64_t n_generated() const {
        std::uint64_t n = 0;
        for (const inlay::Session& session : sessions_) n += session.stats().n_generated_tokens;
        return n;
    }

    const BenchArguments& arguments_;
    const inlay::Engine& engine_;
    std::vector<inlay::Session> sessions_;
    std::mt19937 random_;
    std::uniform_int_distribution<std::int32_t> any_token_;
};

}  // namespace

int bench_parallel(const BenchArguments& arguments, const inlay::Engine& engine, const Loading& loading,
                   const Interrupt& interrupt, bool json) {
    ParallelBench bench(arguments, engine);
    Measured warm_up, measured;
    bench.repeat(interrupt, warm_up);
    for (std::uint32_t i = 0; i < arguments.n_repetitions; ++i) bench.repeat(interrupt, measured);

    if (!json) {
        print_summary(std::to_string(arguments.n_parallel) + " prompts of " + std::to_string(arguments.n_prompt),
                      measured.prefill);
        print_summary("together", measured.decode);
        return kExitSuccess;
    }
    Json result = Json::object();
    add_summary(result, "prefill_tok_s", measured.prefill);
    add_summary(result, "decode_tok_s", measured.decode);
    add_summary(result, "generated_tok_s", measured.generated);
    add_summary(result, "first_token_ms", measured.first_token_ms);
    result["parallel"] = arguments.n_parallel;
    result["shared_prefix"] = arguments.n_shared_prefix;
    result["warm_prefix"] = arguments.warm_prefix;
    result["reused_tokens"] = measured.n_reused / arguments.n_repetitions;
    result["computed_tokens"] = measured.n_computed / arguments.n_repetitions;
    result["mean_batch"] = static_cast<double>(measured.n_parts) / static_cast<double>(measured.n_steps);
    add_conditions(result, arguments, engine.info(), loading);
    print_json(result);
    return kExitSuccess;
}

}  // namespace cli
