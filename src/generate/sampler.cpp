#include "generate/sampler.h"

#include <algorithm>
#include <cmath>

#include "generate/philox.h"
#include "kernels/reference/exp.h"

namespace inlay {
namespace {

int32_t most_likely(std::span<const float> logits) {
    int32_t best = Sampler::kNoToken;
    float best_logit = -INFINITY;
    for (size_t i = 0; i < logits.size(); ++i)
        if (logits[i] > best_logit) {
            best_logit = logits[i];
            best = static_cast<int32_t>(i);
        }
    return best;
}

// By weight, the lower id first among equals.
constexpr auto kBetter = [](const auto& a, const auto& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
};

// Ranks are found in portions that grow by this factor: almost always the first one is enough, and sorting a whole
// vocabulary takes longer than a small model's step.
constexpr size_t kFirstPortion = 128;
constexpr size_t kPortionGrowth = 8;

}  // namespace

int32_t Sampler::sample(std::span<const float> logits, const SamplingOptions& options, uint64_t position) {
    if (options.temperature == 0 || options.top_k == 1) return most_likely(logits);
    list_candidates(logits);
    if (candidates_.empty()) return kNoToken;
    keep_top_k(options.top_k);
    weigh(options.temperature);
    keep_likely(options.top_p, options.min_p);
    return draw(options.seed, position);
}

void Sampler::list_candidates(std::span<const float> logits) {
    candidates_.clear();
    candidates_.reserve(logits.size());
    for (size_t i = 0; i < logits.size(); ++i)
        if (logits[i] > -INFINITY) candidates_.push_back({static_cast<int32_t>(i), logits[i]});
    n_ranked_ = 0;
}

void Sampler::keep_top_k(uint32_t k) {
    if (k == 0 || k >= candidates_.size()) return;
    std::partial_sort(candidates_.begin(), candidates_.begin() + k, candidates_.end(), kBetter);
    candidates_.resize(k);
    n_ranked_ = k;
}

// Sums in the order of the candidates, which depends on the logits alone.
void Sampler::weigh(float temperature) {
    const float best = std::min_element(candidates_.begin(), candidates_.end(), kBetter)->weight;
    total_ = 0;
    for (Candidate& candidate : candidates_) {
        candidate.weight =
            best == candidate.weight ? 1.0f : kernels::reference_exp((candidate.weight - best) / temperature);
        total_ += static_cast<double>(candidate.weight);
    }
}

void Sampler::keep_likely(float top_p, float min_p) {
    if (top_p >= 1 && min_p <= 0) return;
    const double wanted = static_cast<double>(top_p) * total_;
    double sum = static_cast<double>(ranked(0).weight);
    size_t n_kept = 1;
    while (n_kept < candidates_.size() && sum < wanted && ranked(n_kept).weight >= min_p)
        sum += static_cast<double>(candidates_[n_kept++].weight);
    candidates_.resize(n_kept);
    total_ = sum;
}

int32_t Sampler::draw(uint64_t seed, uint64_t position) {
    double rest = uniform(philox(seed, position)) * total_;
    for (size_t rank = 0; rank < candidates_.size(); ++rank) {
        rest -= static_cast<double>(ranked(rank).weight);
        if (rest < 0) return candidates_[rank].token;
    }
    return candidates_.front().token;  // the last bit of a sum
}

const Sampler::Candidate& Sampler::ranked(size_t rank) {
    if (rank >= n_ranked_) {
        const size_t n = std::min(candidates_.size(), std::max(kFirstPortion, n_ranked_ * kPortionGrowth));
        const auto begin = candidates_.begin() + static_cast<ptrdiff_t>(n_ranked_);
        const auto end = candidates_.begin() + static_cast<ptrdiff_t>(n);
        if (end != candidates_.end()) std::nth_element(begin, end, candidates_.end(), kBetter);
        std::sort(begin, end, kBetter);
        n_ranked_ = n;
    }
    return candidates_[rank];
}

}  // namespace inlay
