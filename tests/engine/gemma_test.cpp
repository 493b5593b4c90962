// Gemma 3 270M against the numbers of transformers (tests/data/real): windows of 512 in 15 of 18 layers, a
// SentencePiece vocabulary of 262,144 tokens, Q4_K_M weights. Runs where the model was fetched.
#include "real_model.h"
#include "sanitized.h"

using namespace inlay;
using namespace inlay::test;
using nlohmann::json;

namespace {

constexpr const char* kModel = "gemma-3-270m-q4_k_m.gguf";

json golden() {
    return real_golden("gemma-3-270m-q4_k_m");
}

}  // namespace

// One of the prompts is longer than the window.
TEST_CASE("Gemma 3 in f32 computes the reference logits and greedy tokens") {
    if (kSlowed) INLAY_SKIP("takes too long under a sanitizer or an emulator");
    if (model_file(kModel).empty()) INLAY_SKIP(kModel << " was not fetched");
    check_prompts(TestModel(model_file(kModel)), golden());
}

// Most of the text is seen through the window.
TEST_CASE("Gemma 3 predicts the reference text token by token as the reference") {
    if (kSlowed) INLAY_SKIP("takes too long under a sanitizer or an emulator");
    if (model_file(kModel).empty()) INLAY_SKIP(kModel << " was not fetched");
    const json reference = golden().at("perplexity");
    const auto tokens = reference.at("token_ids").get<std::vector<int32_t>>();
    const auto expected = reference.at("nll").get<std::vector<double>>();
    const std::vector<double> exact = negative_log_likelihoods(TestModel(model_file(kModel)), tokens);
    REQUIRE(exact.size() == expected.size());
    size_t n_equal = 0;
    for (size_t i = 0; i < exact.size(); ++i) n_equal += std::abs(exact[i] - expected[i]) < 1e-3;
    CHECK(n_equal == exact.size());
    CHECK(mean(exact) == Approx(reference.at("mean_nll").get<double>()).margin(1e-4).epsilon(0));
}

TEST_CASE("Gemma 3 with activations of 8 bits predicts the reference text nearly as well") {
    if (kSlowed) INLAY_SKIP("takes too long under a sanitizer or an emulator");
    if (model_file(kModel).empty()) INLAY_SKIP(kModel << " was not fetched");
    const json reference = golden().at("perplexity");
    const auto tokens = reference.at("token_ids").get<std::vector<int32_t>>();
    const auto expected = reference.at("nll").get<std::vector<double>>();
    constexpr size_t kTokens = 640;
    ModelOptions options;
    options.compute = ComputeMode::kAuto;
    options.kv_type = KvType::kF16;
    const TestModel model(model_file(kModel), options);
    const double quick = mean(negative_log_likelihoods(model, std::span(tokens).first(kTokens)));
    const double exact = mean(std::span(expected).first(kTokens - 1));
    CAPTURE(quick, exact);
    CHECK(std::abs(quick - exact) < 0.01);
}
