// What a host's log is told: whole records about an opening, and the end of it.
#include <thread>

#include "model_path.h"
#include "tests/model/gguf_bytes.h"
#include "tests/model/gguf_parts.h"
#include "tests/npy.h"

using namespace inlay::test;

namespace {

struct Records {
    std::vector<std::pair<int32_t, std::string>> all;
    std::thread::id thread = std::this_thread::get_id();
    bool wrong_form = false;
    int n_releases = 0;

    inlay_logger logger(int32_t level = 0) {
        inlay_logger logger{};
        logger.struct_size = sizeof logger;
        logger.level = level;
        logger.user = this;
        logger.log = [](void* user, int32_t record_level, const char* record, size_t size) {
            static_cast<Records*>(user)->take(record_level, record, size);
        };
        logger.on_release = [](void* user) { ++static_cast<Records*>(user)->n_releases; };
        return logger;
    }
    // Whether a record of the level has the words.
    bool has(int32_t level, const std::string& words) const {
        for (const auto& [record_level, record] : all)
            if (record_level == level && record.find(words) != std::string::npos) return true;
        return false;
    }

private:
    void take(int32_t level, const char* record, size_t size) {
        wrong_form |= std::strlen(record) != size || size == 0 || std::strchr(record, '\n') != nullptr;
        wrong_form |= std::this_thread::get_id() != thread;
        all.emplace_back(level, std::string(record, size));
    }
};

inlay_engine_options options_with(const inlay_logger& logger, uint32_t flags = 0) {
    inlay_engine_options options = engine_options();
    options.logger = &logger;
    options.flags = flags;
    return options;
}

EnginePtr open_bytes(const std::string& bytes, const inlay_engine_options& options) {
    const uint64_t size = bytes.size();
    const void* block = bytes.data();
    inlay_model_source source{};
    source.struct_size = sizeof source;
    source.n_parts = 1;
    source.part_sizes = &size;
    source.blocks = &block;
    inlay_engine* engine = nullptr;
    REQUIRE(inlay_engine_open_source(&source, &options, &engine, nullptr) == INLAY_OK);
    return EnginePtr(engine);
}

}  // namespace

TEST_CASE("an opening is told with what was opened and how long it took") {
    Records records;
    {
        const EnginePtr engine = open_model(tiny_model(), options_with(records.logger()));
        CHECK(records.n_releases == 0);
        REQUIRE(records.all.size() >= 2);
        CHECK(records.all.front().first == INLAY_LOG_INFO);
        CHECK_THAT(records.all.front().second, Catch::StartsWith("opening '" + tiny_model() + "': llama, "));
        CHECK(records.all.back().first == INLAY_LOG_INFO);
        CHECK_THAT(records.all.back().second, Catch::StartsWith("opened 3 layers and 384 tokens in ") &&
                                                  Catch::Contains(" ms: ") && Catch::Contains("2 threads"));
        logits_of(engine.get());
    }
    CHECK_FALSE(records.wrong_form);
    CHECK(records.n_releases == 1);
}

TEST_CASE("a host is told from its level on") {
    Records records;
    open_model(tiny_model(), options_with(records.logger(INLAY_LOG_WARNING), INLAY_ENGINE_VOCABULARY_ONLY));
    CHECK_FALSE(records.has(INLAY_LOG_INFO, ""));
    open_model(tiny_model(), options_with(records.logger(INLAY_LOG_INFO), INLAY_ENGINE_VOCABULARY_ONLY));
    CHECK(records.has(INLAY_LOG_INFO, "opened the vocabulary of 384 tokens"));
}

TEST_CASE("what a file leaves out, or has too much of, is a warning") {
    Records records;
    GgufBytes bare;
    bare.head(0, 4).key("general.architecture", 8).string("x").key("tokenizer.ggml.model", 8).string("gpt2");
    bare.array("tokenizer.ggml.tokens", 8, 2).string("a").string("b").array("tokenizer.ggml.merges", 8, 0);
    open_bytes(bare.bytes(), options_with(records.logger(), INLAY_ENGINE_VOCABULARY_ONLY));
    CHECK(records.has(INLAY_LOG_WARNING, "key 'tokenizer.ggml.pre' is missing"));
    CHECK(records.has(INLAY_LOG_WARNING, "no token that ends a text"));
    CHECK(records.has(INLAY_LOG_INFO, "opening part 0 of the source: x, 0 tensors"));

    Records unused;
    GgufParts model(read_file(tiny_model()));
    const std::string words = "tensors that are not used: ";
    open_bytes(model.split(1)[0], options_with(unused.logger()));
    CHECK_FALSE(unused.has(INLAY_LOG_WARNING, words));
    model.add_tensor("stray.weight");
    open_bytes(model.split(1)[0], options_with(unused.logger()));
    CHECK(unused.has(INLAY_LOG_WARNING, words + "'stray.weight'"));
    model.add_tensor("another.weight");
    open_bytes(model.split(1)[0], options_with(unused.logger()));
    CHECK(unused.has(INLAY_LOG_WARNING, words + "'stray.weight' and 1 more"));
}

TEST_CASE("a split model is told with its parts") {
    Records records;
    const auto parts = GgufParts(read_file(tiny_model())).split(3);
    uint64_t sizes[3];
    const void* blocks[3];
    for (size_t i = 0; i < 3; ++i) {
        sizes[i] = parts[i].size();
        blocks[i] = parts[i].data();
    }
    inlay_model_source source{};
    source.struct_size = sizeof source;
    source.n_parts = 3;
    source.part_sizes = sizes;
    source.blocks = blocks;
    const inlay_logger logger = records.logger();
    const inlay_engine_options options = options_with(logger);
    inlay_engine* engine = nullptr;
    REQUIRE(inlay_engine_open_source(&source, &options, &engine, nullptr) == INLAY_OK);
    CHECK(records.has(INLAY_LOG_INFO, "opening part 0 of the source, the first of 3: llama"));
    inlay_engine_release(engine);
    CHECK(records.n_releases == 1);
}

TEST_CASE("a failed opening keeps no logger, and a wrong one is named") {
    Records records;
    inlay_logger logger = records.logger();
    const auto open = [&](const std::string& path) {
        const inlay_engine_options options = options_with(logger);
        inlay_engine* engine = nullptr;
        return outcome_of(
            [&](inlay_error** error) { return inlay_engine_open(path.data(), path.size(), &options, &engine, error); });
    };
    CHECK(open("no/such/file").status == INLAY_E_IO);
    CHECK(records.n_releases == 0);
    logger.log = nullptr;
    CHECK_THAT(open(tiny_model()).sentence, Catch::Contains("options->logger->log is NULL"));
    logger = records.logger();
    logger.struct_size = 1;
    CHECK_THAT(open(tiny_model()).sentence, Catch::Contains("options->logger->struct_size"));
    CHECK(records.all.empty());
    CHECK(records.n_releases == 0);
}
