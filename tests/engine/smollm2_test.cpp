// SmolLM2 135M Instruct against the numbers of transformers (tests/data/real). Runs where the model was fetched.
#include "real_model.h"

using namespace inlay;
using namespace inlay::test;
using nlohmann::json;

namespace {

constexpr const char* kModel = "smollm2-135m-instruct-q4_1.gguf";

json golden() {
    return real_golden("smollm2-135m-instruct-q4_1");
}

// Mean of -ln p(token | before), and with `reference` (the rows of another run) the mean Kullback-Leibler divergence.
struct TextQuality {
    double mean_nll = 0;
    double mean_divergence = 0;
};

std::vector<double> log_probabilities(const float* row, size_t n) {
    double best = -INFINITY;
    for (size_t i = 0; i < n; ++i) best = std::max(best, static_cast<double>(row[i]));
    double sum = 0;
    for (size_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(row[i]) - best);
    std::vector<double> result(n);
    for (size_t i = 0; i < n; ++i) result[i] = static_cast<double>(row[i]) - best - std::log(sum);
    return result;
}

TextQuality text_quality(const TestModel& model, const TestModel* reference, std::span<const int32_t> tokens) {
    constexpr size_t kChunk = 128;
    const size_t width = model.engine->n_vocabulary();
    const auto session = model.session();
    const auto reference_session = reference ? reference->session() : nullptr;
    TextQuality quality;
    for (size_t first = 0; first < tokens.size(); first += kChunk) {
        const auto chunk = tokens.subspan(first, std::min(kChunk, tokens.size() - first));
        session->forward(chunk, 0);
        if (reference) reference_session->forward(chunk, 0);
        for (size_t i = 0; i < chunk.size() && first + i + 1 < tokens.size(); ++i) {
            const auto ours = log_probabilities(session->logits().data() + i * width, width);
            quality.mean_nll -= ours[static_cast<size_t>(tokens[first + i + 1])];
            if (!reference) continue;
            const auto theirs = log_probabilities(reference_session->logits().data() + i * width, width);
            for (size_t v = 0; v < width; ++v) quality.mean_divergence += std::exp(theirs[v]) * (theirs[v] - ours[v]);
        }
    }
    const double n = static_cast<double>(tokens.size() - 1);
    return {quality.mean_nll / n, quality.mean_divergence / n};
}

}  // namespace

TEST_CASE("SmolLM2 in f32 computes the reference logits and greedy tokens") {
    if (model_file(kModel).empty()) INLAY_SKIP(kModel << " was not fetched");
    ModelOptions options;
    options.cache_bytes = uint64_t{256} << 20;
    const TestModel model(model_file(kModel), options);
    check_prompts(model, golden());
}

TEST_CASE("SmolLM2 predicts the reference text as well as the reference") {
    if (model_file(kModel).empty()) INLAY_SKIP(kModel << " was not fetched");
    const json reference = golden().at("perplexity");
    const auto tokens = reference.at("token_ids").get<std::vector<int32_t>>();
    ModelOptions options;
    options.cache_bytes = uint64_t{256} << 20;
    const TestModel exact(model_file(kModel), options);
    CHECK(text_quality(exact, nullptr, tokens).mean_nll ==
          Approx(reference.at("mean_nll").get<double>()).margin(1e-4).epsilon(0));

    options.compute = ComputeMode::kAuto;
    options.kv_type = KvType::kF16;
    const TextQuality quick = text_quality(TestModel(model_file(kModel), options), &exact, tokens);
    const double perplexity_ratio = std::exp(quick.mean_nll - reference.at("mean_nll").get<double>());
    CAPTURE(perplexity_ratio, quick.mean_divergence);
    CHECK(perplexity_ratio < 1.005);
    CHECK(quick.mean_divergence < 0.01);
}
