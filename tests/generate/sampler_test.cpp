#include "generate/sampler.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "generate/philox.h"
#include "kernels/reference/exp.h"

using namespace inlay;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// How often each token is drawn at 20,000 positions.
std::map<int32_t, double> frequencies(std::vector<float> logits, const SamplingOptions& options) {
    constexpr int kDraws = 20000;
    Sampler sampler(kernels::portable());
    std::map<int32_t, double> result;
    for (uint64_t position = 0; position < kDraws; ++position)
        result[sampler.sample(logits, options, position)] += 1.0 / kDraws;
    return result;
}

SamplingOptions at_temperature(float temperature) {
    SamplingOptions options;
    options.temperature = temperature;
    options.seed = 1;
    return options;
}

}  // namespace

TEST_CASE("philox gives the published numbers") {
    // Random123's known answers for philox4x32 with 10 rounds.
    CHECK(philox_block({0, 0, 0, 0}, {0, 0}) == PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    CHECK(philox_block({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
          PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    CHECK(philox_block({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
          PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("temperature 0 takes the most likely token, the lowest id among equals") {
    Sampler sampler(kernels::portable());
    CHECK(sampler.sample(std::vector<float>{1, 3, 2, 3}, {}, 0) == 1);
    CHECK(sampler.sample(std::vector<float>{kNaN, -kInfinity, -5, kNaN}, {}, 0) == 2);
    CHECK(sampler.sample(std::vector<float>{kNaN, kNaN}, {}, 0) == Sampler::kNoToken);
    SamplingOptions options = at_temperature(2);
    options.top_k = 1;
    CHECK(sampler.sample(std::vector<float>{1, 3, 2, 3}, options, 5) == 1);
}

TEST_CASE("tokens are drawn with their probabilities") {
    const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f), -kInfinity, kNaN};
    const auto drawn = frequencies(logits, at_temperature(1));
    CHECK(drawn.size() == 3);
    CHECK(drawn.at(0) == Approx(0.5).margin(0.015));
    CHECK(drawn.at(1) == Approx(0.3).margin(0.015));
    CHECK(drawn.at(2) == Approx(0.2).margin(0.015));

    const auto sharper = frequencies(logits, at_temperature(0.5f));  // squares of the probabilities: 25 : 9 : 4
    CHECK(sharper.at(0) == Approx(25.0 / 38).margin(0.015));
    CHECK(sharper.at(2) == Approx(4.0 / 38).margin(0.015));
}

TEST_CASE("top-k, top-p and min-p keep what they say") {
    const std::vector<float> logits = {std::log(0.5f), std::log(0.25f), std::log(0.15f), std::log(0.1f)};
    SamplingOptions options = at_temperature(1);
    options.top_k = 2;
    CHECK(frequencies(logits, options).size() == 2);
    CHECK(frequencies(logits, options).at(1) == Approx(1.0 / 3).margin(0.015));
    options = at_temperature(1);
    options.top_p = 0.7f;
    CHECK(frequencies(logits, options).size() == 2);
    options.top_p = 0.8f;
    CHECK(frequencies(logits, options).size() == 3);
    options = at_temperature(1);
    options.min_p = 0.25f;
    CHECK(frequencies(logits, options).size() == 3);
}

TEST_CASE("a draw depends on seed and position alone") {
    const std::vector<float> logits(1000, 0.0f);
    Sampler one(kernels::portable());
    Sampler other(kernels::portable());
    SamplingOptions options = at_temperature(1);
    std::vector<int32_t> forward;
    for (uint64_t position = 0; position < 50; ++position) forward.push_back(one.sample(logits, options, position));
    for (uint64_t position = 50; position-- > 0;) CHECK(other.sample(logits, options, position) == forward[position]);
    options.seed = 2;
    int n_equal = 0;
    for (uint64_t position = 0; position < 50; ++position)
        n_equal += one.sample(logits, options, position) == forward[position];
    CHECK(n_equal < 5);
}

// What the sampler does, said plainly: all candidates sorted, then cut, then drawn.
int32_t plain_sample(const std::vector<float>& logits, const SamplingOptions& options, uint64_t position) {
    struct Candidate {
        size_t token;
        float weight;
    };
    std::vector<Candidate> all;
    for (size_t i = 0; i < logits.size(); ++i) all.push_back({i, logits[i]});
    const auto sort = [&] {
        std::stable_sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.weight > b.weight; });
    };
    if (options.top_k > 0) {
        sort();
        all.resize(std::min<size_t>(all.size(), options.top_k));
    }
    const float best = *std::max_element(logits.begin(), logits.end());
    double total = 0;
    for (Candidate& candidate : all) {
        candidate.weight = kernels::reference_exp((candidate.weight - best) / options.temperature);
        total += static_cast<double>(candidate.weight);
    }
    sort();
    if (options.top_p < 1 || options.min_p > 0) {
        double sum = 0;
        size_t n = 0;
        while (n < all.size() &&
               (n == 0 || (sum < static_cast<double>(options.top_p) * total && all[n].weight >= options.min_p)))
            sum += static_cast<double>(all[n++].weight);
        all.resize(n);
        total = sum;
    }
    double rest = uniform(philox(options.seed, position)) * total;
    for (const Candidate& candidate : all)
        if ((rest -= static_cast<double>(candidate.weight)) < 0) return static_cast<int32_t>(candidate.token);
    return static_cast<int32_t>(all.front().token);
}

TEST_CASE("ranks that are found as they are needed are those of a whole sort") {
    std::mt19937 random(5);
    Sampler sampler(kernels::portable());
    for (const float spread : {0.0f, 0.5f, 3.0f, 12.0f}) {
        std::vector<float> logits(20000);
        for (float& logit : logits) logit = spread * std::normal_distribution<float>()(random);
        SamplingOptions options[5];
        for (SamplingOptions& each : options) each = at_temperature(1);
        options[1].temperature = 0.3f;
        options[2].top_p = 0.9f;
        options[3].min_p = 0.05f;
        options[3].top_p = 0.99f;
        options[4].top_k = 700;
        for (const SamplingOptions& each : options)
            for (uint64_t position = 0; position < 30; ++position)
                REQUIRE(sampler.sample(logits, each, position) == plain_sample(logits, each, position));
    }
}

TEST_CASE("infinite logits are certain") {
    Sampler sampler(kernels::portable());
    CHECK(sampler.sample(std::vector<float>{0, kInfinity, 0}, at_temperature(1), 3) == 1);
}
