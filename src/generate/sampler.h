// Chooses a token from a row of logits: a pure function of the row, the options and the position in the sequence, so
// that the same seed gives the same text in any batch, on any number of threads, after any truncation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernels.h"

namespace inlay {

struct SamplingOptions {
    static constexpr float kMaxTemperature = 100;

    uint64_t seed = 0;
    float temperature = 0;  // 0: the most likely token, the lowest id among equals
    float top_p = 1;        // 1: all
    float min_p = 0;        // 0: all
    uint32_t top_k = 0;     // 0: all
};

class Sampler {
public:
    explicit Sampler(const kernels::Kernels& kernels) : kernels_(kernels) {}

    static constexpr int32_t kNoToken = -1;

    // `position` is that of the token to be chosen. logits: [n_vocabulary]; NaN counts as impossible. kNoToken when
    // none is possible.
    int32_t sample(std::span<const float> logits, const SamplingOptions& options, uint64_t position);

private:
    struct Candidate {
        int32_t token;
        float weight;  // exp((logit - largest) / temperature)
    };

    void weigh_all(std::span<const float> logits, float largest, float temperature);
    void weigh_top_k(std::span<const float> logits, uint32_t k, float largest, float temperature);
    void keep_likely(float top_p, float min_p);
    int32_t draw(uint64_t seed, uint64_t position);
    const Candidate& ranked(size_t rank);

    const kernels::Kernels& kernels_;
    std::vector<float> weights_;
    std::vector<Candidate> candidates_;  // memory kept between calls
    size_t n_ranked_ = 0;                // of them, the first ones are the best, best first
    double total_ = 0;                   // of their weights
};

}  // namespace inlay
