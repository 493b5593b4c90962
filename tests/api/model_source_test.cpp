// Models from files, split or mapped, from memory and through a reader: the logits are the same, bit for bit.
#include <algorithm>
#include <filesystem>
#include <map>
#include <thread>

#include "model_path.h"
#include "tests/model/gguf_parts.h"
#include "tests/npy.h"
#include "tests/temporary_directory.h"

using namespace inlay::test;

namespace {

const std::filesystem::path kModels[] = {data_dir() / "tiny/llama/llama.f16.gguf",
                                         data_dir() / "tiny/gemma3_text/gemma3_text.f32.gguf",
                                         data_dir() / "quant_models/q_Q4_K_M.gguf"};

void count_release(void* user) {
    ++*static_cast<int*>(user);
}

// A host's memory or reader with the parts of a model, and what was done with it.
struct Host {
    std::vector<std::string> parts;
    std::vector<uint64_t> sizes;
    std::vector<const void*> blocks;
    std::thread::id thread = std::this_thread::get_id();
    int n_releases = 0;
    int n_reads = 0;
    int fails_at_read = -1;
    bool wrong_thread = false;
    bool wrong_range = false;

    explicit Host(std::vector<std::string> model) : parts(std::move(model)) {
        for (const std::string& part : parts) {
            sizes.push_back(part.size());
            blocks.push_back(part.data());
        }
    }
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;

    inlay_model_source memory() {
        inlay_model_source source{};
        source.struct_size = sizeof source;
        source.n_parts = static_cast<uint32_t>(parts.size());
        source.part_sizes = sizes.data();
        source.blocks = blocks.data();
        source.user = &n_releases;
        source.on_release = count_release;
        return source;
    }
    inlay_model_source reader() {
        inlay_model_source source = memory();
        source.blocks = nullptr;
        source.user = this;
        source.read = [](void* user, uint32_t part, uint64_t offset, void* buffer, size_t size) -> int32_t {
            return static_cast<Host*>(user)->read(part, offset, buffer, size);
        };
        source.on_release = [](void* user) { ++static_cast<Host*>(user)->n_releases; };
        return source;
    }

private:
    int32_t read(uint32_t part, uint64_t offset, void* buffer, size_t size) {
        wrong_thread |= std::this_thread::get_id() != thread;
        if (n_reads++ == fails_at_read) return -17;
        wrong_range |= part >= parts.size() || offset > sizes[part] || size > sizes[part] - offset || size == 0;
        if (!wrong_range) std::memcpy(buffer, parts[part].data() + offset, size);
        return 0;
    }
};

Outcome open_source(const inlay_model_source& source, const inlay_engine_options& options, EnginePtr& engine) {
    inlay_engine* raw = nullptr;
    const Outcome outcome =
        outcome_of([&](inlay_error** error) { return inlay_engine_open_source(&source, &options, &raw, error); });
    engine.reset(raw);
    CHECK((raw != nullptr) == (outcome.status == INLAY_OK));
    return outcome;
}

EnginePtr open_source(const inlay_model_source& source, uint32_t n_threads = 3) {
    EnginePtr engine;
    const Outcome outcome = open_source(source, engine_options(n_threads), engine);
    INFO(outcome.sentence);
    REQUIRE(outcome.status == INLAY_OK);
    return engine;
}

void refuses(const inlay_model_source& source, int32_t status, const std::string& word, uint32_t flags = 0) {
    inlay_engine_options options = engine_options();
    options.flags = flags;
    EnginePtr engine;
    const Outcome outcome = open_source(source, options, engine);
    CAPTURE(outcome.sentence);
    CHECK(outcome.status == status);
    CHECK_THAT(outcome.sentence, Catch::Contains(word));
}

inlay_engine_info info_of(const inlay_engine* engine) {
    inlay_engine_info info{};
    info.struct_size = sizeof info;
    REQUIRE(inlay_engine_get_info(engine, &info, nullptr) == INLAY_OK);
    return info;
}

std::vector<std::string> write_parts(const TemporaryDirectory& directory, const std::vector<std::string>& parts) {
    std::vector<std::string> paths;
    for (size_t i = 0; i < parts.size(); ++i)
        paths.push_back(directory.write(
            "a model-0000" + std::to_string(i + 1) + "-of-0000" + std::to_string(parts.size()) + ".gguf", parts[i]));
    return paths;
}

}  // namespace

TEST_CASE("a split model's logits are those of the whole") {
    for (const auto& model : kModels) {
        CAPTURE(model);
        const std::vector<float> expected = logits_of(open_model(model.string()).get());
        const TemporaryDirectory directory;
        const auto paths = write_parts(directory, GgufParts(read_file(model)).split(3));
        for (const uint32_t flags : {0u, INLAY_ENGINE_MAP_FILE}) {
            inlay_engine_options options = engine_options();
            options.flags = flags;
            const EnginePtr engine = open_model(paths[0], options);
            CHECK(logits_of(engine.get()) == expected);
            CHECK(info_of(engine.get()).n_tensors == GgufParts(read_file(model)).n_tensors());
            uint64_t bytes = 0;
            for (const auto& path : paths) bytes += std::filesystem::file_size(path);
            CHECK(info_of(engine.get()).file_bytes == bytes);
        }
    }
}

TEST_CASE("a mapped file's logits are those of a read one, on any number of threads") {
    std::vector<std::filesystem::path> models(std::begin(kModels), std::end(kModels));
    models.push_back(data_dir() / "quant_models/q_Q4_1.gguf");
    models.push_back(data_dir() / "quant_models/q_Q6_K.gguf");
    for (const auto& model : models) {
        CAPTURE(model);
        for (const int32_t compute : {INLAY_COMPUTE_AUTO, INLAY_COMPUTE_F32}) {
            inlay_engine_options options = engine_options();
            options.compute = compute;
            const std::vector<float> expected = logits_of(open_model(model.string(), options).get());
            options.flags = INLAY_ENGINE_MAP_FILE;
            for (const uint32_t n_threads : {1u, 3u}) {
                options.n_threads = n_threads;
                CHECK(logits_of(open_model(model.string(), options).get()) == expected);
            }
        }
    }
}

TEST_CASE("weights of a mapped file take no memory of their own, and stay when the file's name goes") {
    const std::string bytes = read_file(kModels[2]);
    const EnginePtr packed = open_model(kModels[2].string());
    EnginePtr mapped;
    {
        const TemporaryDirectory directory;
        inlay_engine_options options = engine_options();
        options.flags = INLAY_ENGINE_MAP_FILE;
        options.n_threads = 1;
        mapped = open_model(directory.write("gone.gguf", bytes), options);
        CHECK(info_of(mapped.get()).weight_bytes < info_of(packed.get()).weight_bytes / 2);
    }
    CHECK(logits_of(mapped.get()) == logits_of(packed.get()));
}

TEST_CASE("a model in memory has the same logits, at any address, split or whole") {
    for (const auto& model : kModels) {
        CAPTURE(model);
        const std::string bytes = read_file(model);
        const std::vector<float> expected = logits_of(open_model(model.string()).get());
        for (const size_t n_parts : {size_t{1}, size_t{4}}) {
            Host host(n_parts == 1 ? std::vector<std::string>{bytes} : GgufParts(bytes).split(n_parts, {}, true));
            const EnginePtr engine = open_source(host.memory());
            CHECK(host.n_releases == 1);
            for (std::string& part : host.parts) std::fill(part.begin(), part.end(), '\xff');  // not needed any more
            CHECK(logits_of(engine.get()) == expected);
            CHECK(host.n_releases == 1);
        }
        Host odd({bytes});
        odd.parts[0].insert(0, 1, '?');
        odd.blocks[0] = odd.parts[0].data() + 1;
        CHECK(logits_of(open_source(odd.memory()).get()) == expected);
    }
}

TEST_CASE("a reader is called by the opening thread only, and gives the same logits") {
    for (const auto& model : kModels) {
        CAPTURE(model);
        const std::string bytes = read_file(model);
        const std::vector<float> expected = logits_of(open_model(model.string()).get());
        for (const size_t n_parts : {size_t{1}, size_t{4}}) {
            Host host(n_parts == 1 ? std::vector<std::string>{bytes} : GgufParts(bytes).split(n_parts));
            const EnginePtr engine = open_source(host.reader());
            CHECK(host.n_releases == 1);
            const int n_reads = host.n_reads;
            CHECK(logits_of(engine.get()) == expected);
            CHECK(host.n_reads == n_reads);
            CHECK(host.n_reads > static_cast<int>(n_parts));
            CHECK_FALSE(host.wrong_thread);
            CHECK_FALSE(host.wrong_range);
        }
    }
}

TEST_CASE("a reader that fails ends the opening, whichever read it is") {
    Host host(GgufParts(read_file(kModels[0])).split(2));
    EnginePtr engine;
    for (host.fails_at_read = 0;; host.fails_at_read += 3) {
        host.n_reads = 0;
        const Outcome outcome = open_source(host.reader(), engine_options(), engine);
        if (outcome.status == INLAY_OK) break;
        CAPTURE(outcome.sentence);
        CHECK(outcome.status == INLAY_E_IO);
        CHECK_THAT(outcome.sentence,
                   Catch::StartsWith("source->read returned -17 for ") && Catch::Contains("of part "));
        CHECK(host.n_releases == 0);  // nothing was taken
    }
    CHECK(host.fails_at_read > 10);
    CHECK(host.n_releases == 1);
    host.n_reads = 0;
    host.fails_at_read = 0;
    const Outcome first = open_source(host.reader(), engine_options(), engine);
    CHECK_THAT(first.sentence, Catch::EndsWith("at offset 0 of part 0"));
}

TEST_CASE("sources name what is wrong") {
    Host host(GgufParts(read_file(kModels[0])).split(2));
    EnginePtr engine;
    inlay_model_source source = host.memory();
    inlay_engine* raw = nullptr;
    CHECK(outcome_of([&](inlay_error** error) {
              return inlay_engine_open_source(nullptr, nullptr, &raw, error);
          }).sentence == "source is NULL");
    CHECK(outcome_of([&](inlay_error** error) {
              return inlay_engine_open_source(&source, nullptr, nullptr, error);
          }).sentence == "engine is NULL");
    refuses(source, INLAY_E_INVALID_ARGUMENT, "INLAY_ENGINE_MAP_FILE", INLAY_ENGINE_MAP_FILE);
    source.struct_size = 4;
    refuses(source, INLAY_E_INVALID_ARGUMENT, "source->struct_size");
    source = host.memory();
    source.n_parts = 0;
    refuses(source, INLAY_E_INVALID_ARGUMENT, "source->n_parts");
    source.n_parts = 65536;
    refuses(source, INLAY_E_INVALID_ARGUMENT, "source->n_parts");
    source.n_parts = 1;
    refuses(source, INLAY_E_INVALID_ARGUMENT, "n_parts is 1, but the model has 2");
    source = host.memory();
    source.part_sizes = nullptr;
    refuses(source, INLAY_E_INVALID_ARGUMENT, "source->part_sizes");
    source = host.memory();
    source.read = host.reader().read;
    refuses(source, INLAY_E_INVALID_ARGUMENT, "either source->blocks or source->read");
    source.read = nullptr;
    source.blocks = nullptr;
    refuses(source, INLAY_E_INVALID_ARGUMENT, "either source->blocks or source->read");
    source = host.memory();
    std::swap(host.blocks[1], host.blocks[0]);
    std::swap(host.sizes[1], host.sizes[0]);
    refuses(source, INLAY_E_INVALID_ARGUMENT, "part 2 of 2 (key 'split.no')");
    const uint64_t size = std::exchange(host.sizes[0], UINT64_MAX);
    refuses(source, INLAY_E_INVALID_ARGUMENT, "source->part_sizes[0]");
    host.sizes[0] = size;
    host.blocks[1] = nullptr;
    refuses(source, INLAY_E_INVALID_ARGUMENT, "source->blocks[1]");
    host.sizes[1] = 0;
    refuses(source, INLAY_E_INVALID_ARGUMENT, "part 2 of 2");
    host.sizes[0] = 0;
    refuses(source, INLAY_E_FORMAT, "magic");
    CHECK(host.n_releases == 0);
}

TEST_CASE("an opening that is cancelled keeps nothing of a source") {
    Host host({read_file(kModels[0])});
    inlay_engine_options options = engine_options();
    options.progress = [](void*, uint64_t, uint64_t) -> int32_t { return 1; };
    EnginePtr engine;
    CHECK(open_source(host.memory(), options, engine).status == INLAY_E_CANCELLED);
    CHECK(open_source(host.reader(), options, engine).status == INLAY_E_CANCELLED);
    CHECK(host.n_releases == 0);
}

TEST_CASE("the vocabulary alone comes from every kind of source") {
    Host host(GgufParts(read_file(kModels[0])).split(2));
    inlay_engine_options options = engine_options();
    options.flags = INLAY_ENGINE_VOCABULARY_ONLY;
    EnginePtr engine;
    for (const auto& source : {host.memory(), host.reader()}) {
        REQUIRE(open_source(source, options, engine).status == INLAY_OK);
        CHECK(info_of(engine.get()).n_vocabulary == 384);
    }
    CHECK(host.n_releases == 2);
}

TEST_CASE("an estimate from a source is the one from the file") {
    const auto whole = kModels[2].string();
    inlay_estimate expected{};
    expected.struct_size = sizeof expected;
    REQUIRE(inlay_estimate_memory(whole.data(), whole.size(), nullptr, &expected, nullptr) == INLAY_OK);
    CHECK(expected.weight_bytes > 0);

    const auto parts = GgufParts(read_file(kModels[2])).split(3);
    Host host(parts);
    inlay_estimate found{};
    found.struct_size = sizeof found;
    // All but the head of the first part, which is kept: it names fewer tensors.
    const auto check_found = [&] {
        CHECK(found.tokenizer_bytes <= expected.tokenizer_bytes);
        found.total_bytes += expected.tokenizer_bytes - found.tokenizer_bytes;
        found.tokenizer_bytes = expected.tokenizer_bytes;
        CHECK(std::memcmp(&found, &expected, sizeof found) == 0);
    };
    for (const auto& source : {host.memory(), host.reader()}) {
        REQUIRE(inlay_estimate_source(&source, nullptr, &found, nullptr) == INLAY_OK);
        check_found();
    }
    CHECK(host.n_releases == 0);
    const TemporaryDirectory directory;
    const auto paths = write_parts(directory, parts);
    REQUIRE(inlay_estimate_memory(paths[0].data(), paths[0].size(), nullptr, &found, nullptr) == INLAY_OK);
    check_found();

    std::filesystem::remove(paths[2]);
    const Outcome missing = outcome_of([&](inlay_error** error) {
        return inlay_estimate_memory(paths[0].data(), paths[0].size(), nullptr, &found, error);
    });
    CHECK(missing.status == INLAY_E_IO);
    CHECK_THAT(missing.sentence, Catch::Contains("a model-00003-of-00003.gguf"));
    CHECK(outcome_of([&](inlay_error** error) {
              return inlay_estimate_source(nullptr, nullptr, &found, error);
          }).sentence == "source is NULL");
}

TEST_CASE("opening a split model names the file that is missing or wrong") {
    const TemporaryDirectory directory;
    const auto paths = write_parts(directory, GgufParts(read_file(kModels[0])).split(3));
    const auto open = [&](const std::string& path) {
        inlay_engine* engine = nullptr;
        return outcome_of(
            [&](inlay_error** error) { return inlay_engine_open(path.data(), path.size(), nullptr, &engine, error); });
    };
    CHECK(open(paths[1]).status == INLAY_E_INVALID_ARGUMENT);
    CHECK_THAT(open(paths[1]).sentence, Catch::Contains("part 2 of 3"));
    std::filesystem::remove(paths[1]);
    CHECK(open(paths[0]).status == INLAY_E_IO);
    CHECK_THAT(open(paths[0]).sentence, Catch::Contains("a model-00002-of-00003.gguf"));
    std::filesystem::copy_file(paths[2], paths[1]);
    CHECK(open(paths[0]).status == INLAY_E_FORMAT);
    CHECK_THAT(open(paths[0]).sentence, Catch::Contains("a model-00002-of-00003.gguf': key 'split.no'"));
}
