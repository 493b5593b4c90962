#include "generate/sampler.h"

#include <algorithm>
#include <cmath>

#include "generate/philox.h"

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
    const int32_t best = most_likely(logits);
    if (options.temperature == 0 || options.top_k == 1 || best == kNoToken) return best;
    const float largest = logits[static_cast<size_t>(best)];
    if (largest == INFINITY) return best;
    if (options.top_k != 0 && options.top_k < logits.size())
        weigh_top_k(logits, options.top_k, largest, options.temperature);
    else
        weigh_all(logits, largest, options.temperature);
    total_ = 0;
    for (const Candidate& candidate : candidates_) total_ += static_cast<double>(candidate.weight);
    keep_likely(options.top_p, options.min_p);
    return draw(options.seed, position);
}

// What has no weight, as NaN and -inf, is no candidate.
void Sampler::weigh_all(std::span<const float> logits, float largest, float temperature) {
    weights_.resize(logits.size());
    kernels_.softmax_weights(logits.data(), logits.size(), largest, temperature, weights_.data());
    candidates_.clear();
    candidates_.reserve(logits.size());
    for (size_t i = 0; i < logits.size(); ++i)
        if (weights_[i] > 0) candidates_.push_back({static_cast<int32_t>(i), weights_[i]});
    n_ranked_ = 0;
}

// Ranked by logits, which differ where weights do not any more.
void Sampler::weigh_top_k(std::span<const float> logits, uint32_t k, float largest, float temperature) {
    candidates_.clear();
    candidates_.reserve(logits.size());
    for (size_t i = 0; i < logits.size(); ++i)
        if (logits[i] > -INFINITY) candidates_.push_back({static_cast<int32_t>(i), logits[i]});
    n_ranked_ = std::min<size_t>(k, candidates_.size());
    std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<ptrdiff_t>(n_ranked_), candidates_.end(),
                      kBetter);
    candidates_.resize(n_ranked_);
    weights_.resize(n_ranked_);
    for (size_t i = 0; i < n_ranked_; ++i) weights_[i] = candidates_[i].weight;
    kernels_.softmax_weights(weights_.data(), n_ranked_, largest, temperature, weights_.data());
    for (size_t i = 0; i < n_ranked_; ++i) candidates_[i].weight = weights_[i];
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
