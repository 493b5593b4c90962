// How much of what the cache holds are tokens: 256 sequences with lengths log-uniform in 100..4,000 join and leave, 64
// at a time, and grow token by token after their prompt. Counted at every step, beside what contiguous reservations of
// 4,096 tokens would hold for the same sequences. Shape of SmolLM2-135M in f16; only addresses are used, no memory.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <random>

#include "cache/cache.h"

using namespace inlay;

namespace {

constexpr size_t kSequences = 256;
constexpr size_t kLive = 64;
constexpr size_t kReservation = 4096;
constexpr size_t kPromptChunk = 512;

struct Running {
    std::unique_ptr<Sequence> sequence;
    size_t length = 0;  // at which it leaves
};

struct Share {
    double sum = 0;
    double least = 1;
    size_t n = 0;

    void add(double share) {
        sum += share;
        least = std::min(least, share);
        ++n;
    }
    double mean() const { return sum / static_cast<double>(n); }
};

class Trace {
public:
    explicit Trace(bool no_reuse)
        : layout_(make_kv_layout(std::vector<KvLayer>(30, {{3, 64, 64}, 0}), KvType::kF16, KvType::kF16)),
          cache_(layout_, system_pages(), options(no_reuse)) {}

    void run() {
        while (n_joined_ < kSequences || !running_.empty()) {
            while (running_.size() < kLive && n_joined_ < kSequences) join();
            for (Running& each : running_) step(each);
            measure();
            std::erase_if(running_, [](const Running& each) { return each.sequence->n_computed() == each.length; });
        }
    }

    Share paged;       // all steps
    Share steady;      // steps with 64 live sequences, all of them beyond their prompt's first step
    Share contiguous;  // those steps, with reservations

private:
    CacheOptions options(bool no_reuse) const {
        CacheOptions options;
        options.budget_bytes = kLive * kReservation * layout_.bytes_per_token();
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

    void measure() {
        double tokens = 0;
        for (const Running& each : running_) tokens += static_cast<double>(each.sequence->n_computed());
        const CacheStats stats = cache_.stats();
        const double needed = tokens * static_cast<double>(layout_.bytes_per_token());
        const double share = needed / static_cast<double>(stats.used_bytes + stats.table_bytes);
        paged.add(share);
        if (running_.size() < kLive) return;
        steady.add(share);
        contiguous.add(tokens / static_cast<double>(kReservation * running_.size()));
    }

    KvLayout layout_;
    Cache cache_;
    std::mt19937_64 random_{20240607};
    std::vector<Running> running_;
    size_t n_joined_ = 0;
};

}  // namespace

TEST_CASE("at least 96 % of the bytes held are tokens") {
    const bool no_reuse = GENERATE(false, true);
    Trace trace(no_reuse);
    trace.run();
    WARN("paged" << (no_reuse ? ", no reuse" : "") << ": " << 100 * trace.steady.mean() << " % in mean, "
                 << 100 * trace.steady.least << " % at least over " << trace.steady.n << " steps with " << kLive
                 << " sequences; " << 100 * trace.paged.mean() << " % in mean over all " << trace.paged.n << " steps");
    WARN("contiguous: " << 100 * trace.contiguous.mean() << " % in mean, " << 100 * trace.contiguous.least
                        << " % at least");
    CHECK(trace.steady.n > 100);
    CHECK(trace.steady.mean() >= 0.96);
    CHECK(trace.steady.least >= 0.96);
    CHECK(trace.paged.mean() >= 0.96);
}
