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

}  // namespace

int32_t Sampler::sample(std::span<const float> logits, const SamplingOptions& options, uint64_t position) {
    if (options.temperature == 0 || options.top_k == 1) return most_likely(logits);
    candidates_.clear();
    candidates_.reserve(logits.size());
    for (size_t i = 0; i < logits.size(); ++i)
        if (logits[i] > -INFINITY) candidates_.push_back({static_cast<int32_t>(i), logits[i]});
    if (candidates_.empty()) return kNoToken;
    keep_top_k(options.top_k);
    weigh(options.temperature);
    keep_likely(options.top_p, options.min_p);
    return draw(options.seed, position);
}

void Sampler::keep_top_k(uint32_t k) {
    const auto better = [](const Candidate& a, const Candidate& b) {
        return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
    };
    if (k > 0 && k < candidates_.size()) {
        std::nth_element(candidates_.begin(), candidates_.begin() + k, candidates_.end(), better);
        candidates_.resize(k);
    }
    std::sort(candidates_.begin(), candidates_.end(), better);
}

void Sampler::weigh(float temperature) {
    const float best = candidates_.front().weight;
    for (Candidate& candidate : candidates_)
        candidate.weight =
            best == candidate.weight ? 1.0f : kernels::reference_exp((candidate.weight - best) / temperature);
}

void Sampler::keep_likely(float top_p, float min_p) {
    double total = 0;
    for (const Candidate& candidate : candidates_) total += static_cast<double>(candidate.weight);
    double sum = 0;
    size_t n_kept = 0;
    while (n_kept < candidates_.size() && candidates_[n_kept].weight >= min_p &&
           (n_kept == 0 || sum < static_cast<double>(top_p) * total))
        sum += static_cast<double>(candidates_[n_kept++].weight);
    candidates_.resize(std::max(size_t{1}, n_kept));
}

int32_t Sampler::draw(uint64_t seed, uint64_t position) const {
    double total = 0;
    for (const Candidate& candidate : candidates_) total += static_cast<double>(candidate.weight);
    double rest = uniform(philox(seed, position)) * total;
    for (const Candidate& candidate : candidates_) {
        rest -= static_cast<double>(candidate.weight);
        if (rest < 0) return candidate.token;
    }
    return candidates_.back().token;
}

}  // namespace inlay
