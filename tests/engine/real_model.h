// Real models against the numbers of transformers (tests/data/real), where they were fetched.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "npy.h"
#include "test_model.h"

namespace inlay::test {

inline nlohmann::json real_golden(const std::string& name) {
    return nlohmann::json::parse(read_file(data_dir() / "real" / (name + ".json")));
}

// Logits after each prompt, and the greedy tokens behind it. `model` computes in f32.
inline void check_prompts(const TestModel& model, const nlohmann::json& reference) {
    for (const nlohmann::json& prompt : reference.at("prompts")) {
        const auto tokens = prompt.at("token_ids").get<std::vector<int32_t>>();
        CAPTURE(prompt.at("text").get<std::string>());
        const auto expected = prompt.at("greedy_ids").get<std::vector<int32_t>>();
        const auto session = model.session();
        session->forward(std::span(tokens).first(std::min<size_t>(tokens.size(), 512)), 0);
        if (tokens.size() > 512) session->forward(std::span(tokens).subspan(512), tokens.size() - 513);
        const std::span<const float> row = session->logits().last(model.engine->n_vocabulary());
        for (const char* kind : {"top20", "probe"}) {
            const auto ids = prompt.at(std::string(kind) + "_ids").get<std::vector<size_t>>();
            const auto logits = prompt.at(std::string(kind) + "_logits").get<std::vector<double>>();
            for (size_t i = 0; i < ids.size(); ++i)
                CHECK(static_cast<double>(row[ids[i]]) == Approx(logits[i]).margin(1e-3).epsilon(0));
        }
        CHECK(generate(*model.session(), tokens, greedy(expected.size())) == expected);
    }
}

// ln of the sum of exp(row[i]).
inline double log_sum_exp(std::span<const float> row) {
    const auto best = static_cast<double>(*std::max_element(row.begin(), row.end()));
    double sum = 0;
    for (const float logit : row) sum += std::exp(static_cast<double>(logit) - best);
    return best + std::log(sum);
}

// -ln p(tokens[i] | tokens before it), for i from 1 on: [tokens.size() - 1].
inline std::vector<double> negative_log_likelihoods(const TestModel& model, std::span<const int32_t> tokens) {
    constexpr size_t kChunk = 128;
    const size_t width = model.engine->n_vocabulary();
    const auto session = model.session();
    std::vector<double> result;
    for (size_t first = 0; first + 1 < tokens.size(); first += kChunk) {
        const auto chunk = tokens.subspan(first, std::min(kChunk, tokens.size() - 1 - first));
        session->forward(chunk, 0);
        for (size_t i = 0; i < chunk.size(); ++i) {
            const std::span<const float> row = session->logits().subspan(i * width, width);
            const auto next = static_cast<size_t>(tokens[first + i + 1]);
            result.push_back(log_sum_exp(row) - static_cast<double>(row[next]));
        }
    }
    return result;
}

inline double mean(std::span<const double> values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
}

}  // namespace inlay::test
