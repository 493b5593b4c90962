// A trace of a busy cache: 256 sequences with lengths log-uniform in 100..4,000 join and leave, 64 at a time, and grow
// token by token after their prompt. Shape of SmolLM2-135M in f16; only addresses are used, no memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "cache/cache.h"

namespace inlay::test {

constexpr size_t kTraceLive = 64;
constexpr size_t kTraceReservation = 4096;  // tokens that a contiguous cache reserves for each

// What the live sequences hold after a step.
struct TraceStep {
    size_t n_live = 0;
    size_t token_bytes = 0;       // of the tokens themselves
    size_t paged_bytes = 0;       // of the blocks they use, and of tables and nodes
    size_t contiguous_bytes = 0;  // of reservations for as many
};

class CacheTrace {
public:
    explicit CacheTrace(bool no_reuse)
        : layout_(make_kv_layout(std::vector<KvLayer>(30, {{3, 64, 64}, 0}), KvType::kF16, KvType::kF16)),
          cache_(layout_, system_pages(), options(no_reuse)) {}

    std::vector<TraceStep> run() {
        std::vector<TraceStep> steps;
        while (n_joined_ < kSequences || !running_.empty()) {
            while (running_.size() < kTraceLive && n_joined_ < kSequences) join();
            for (Running& each : running_) step(each);
            steps.push_back(measure());
            std::erase_if(running_, [](const Running& each) { return each.sequence->n_computed() == each.length; });
        }
        return steps;
    }

private:
    static constexpr size_t kSequences = 256;
    static constexpr size_t kPromptChunk = 512;

    struct Running {
        std::unique_ptr<Sequence> sequence;
        size_t length = 0;  // at which it leaves
    };

    CacheOptions options(bool no_reuse) const {
        CacheOptions options;
        options.budget_bytes = kTraceLive * kTraceReservation * layout_.bytes_per_token();
        options.no_reuse = no_reuse;
        return options;
    }

    void join() {
        std::uniform_real_distribution<double> log_length(std::log(100.0), std::log(4000.0));
        std::uniform_real_distribution<double> prompt_part(0.1, 0.9);
        Running joined;
        joined.length = static_cast<size_t>(std::exp(log_length(random_)));
        joined.sequence = std::make_unique<Sequence>(cache_);
        append(*joined.sequence, static_cast<size_t>(prompt_part(random_) * static_cast<double>(joined.length)));
        running_.push_back(std::move(joined));
        ++n_joined_;
    }

    void append(Sequence& sequence, size_t n_tokens) {
        std::vector<int32_t> tokens(n_tokens);
        for (int32_t& token : tokens) token = static_cast<int32_t>(random_() % 49152);
        cache_.append(sequence, tokens);
    }

    void step(Running& each) {
        Sequence& sequence = *each.sequence;
        if (sequence.n_computed() == sequence.tokens().size()) append(sequence, 1);
        const size_t n = std::min(kPromptChunk, sequence.tokens().size() - sequence.n_computed());
        if (!cache_.prepare(sequence, n)) throw std::runtime_error("the cache is full");
        cache_.commit(sequence, n);
    }

    TraceStep measure() const {
        size_t n_tokens = 0;
        for (const Running& each : running_) n_tokens += each.sequence->n_computed();
        const CacheStats stats = cache_.stats();
        TraceStep step;
        step.n_live = running_.size();
        step.token_bytes = n_tokens * layout_.bytes_per_token();
        step.paged_bytes = stats.used_bytes + stats.table_bytes;
        step.contiguous_bytes = step.n_live * kTraceReservation * layout_.bytes_per_token();
        return step;
    }

    KvLayout layout_;
    Cache cache_;
    std::mt19937_64 random_{20240607};
    std::vector<Running> running_;
    size_t n_joined_ = 0;
};

}  // namespace inlay::test
