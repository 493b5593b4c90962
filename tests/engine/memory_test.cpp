// Scratch memory and estimates: what is said is what is taken.
#include <catch2/catch.hpp>

#include "engine/estimate.h"
#include "model/decoder.h"
#include "test_model.h"

using namespace inlay;
using namespace inlay::test;

TEST_CASE("scratch memory does not grow with the square of the text") {
    const std::filesystem::path path = data_dir() / "quant_models/q_Q4_1.gguf";
    const TestModel model(path);
    StepShape shape = Decoder::step_shape(model.engine->spec(), 512);
    shape.max_positions = 1u << 20;
    const auto bytes = [&](size_t n_rows, size_t n_positions) {
        return CpuBackend::scratch_bytes_for(shape, {.n_rows = n_rows, .n_positions = n_positions}, 2);
    };
    CHECK(bytes(512, 8192) - bytes(512, 1024) < bytes(512, 1024) / 2);
    CHECK(bytes(512, 32768) < 2 * bytes(512, 1024));
    // Linear in the splits of 512 positions.
    CHECK(bytes(1, 32768) - bytes(1, 16384) == bytes(1, 16384 + 16384 + 16384) - bytes(1, 32768));
}

TEST_CASE("what a long prompt takes is what the estimate says") {
    const std::filesystem::path path = data_dir() / "quant_models/q_Q4_1.gguf";
    ModelOptions options;
    options.compute = ComputeMode::kAuto;
    options.kv_type = KvType::kF16;
    const TestModel model(path, options);
    const EstimateOptions estimate_options{.context_tokens = 2000,
                                           .key_type = KvType::kF16,
                                           .value_type = KvType::kF16,
                                           .max_step_tokens = 512,
                                           .n_threads = 2};
    const MemoryEstimate estimate = estimate_memory(path.string(), estimate_options);
    CHECK(estimate.weight_bytes == model.engine->backend().weight_bytes());

    const auto session = model.session(2001);  // with a place for the token that is generated
    std::vector<int32_t> prompt(2000, 5);
    session->append(prompt);
    Chunk chunk;
    while (session->next(chunk) == NextOutcome::kMore) {
    }
    CHECK(model.cache->cache().stats().used_bytes == estimate.kv_bytes);
    CHECK(model.engine->backend().scratch_bytes() <= estimate.scratch_bytes);
    CHECK(model.engine->backend().scratch_bytes() * 20 > estimate.scratch_bytes * 19);
}
