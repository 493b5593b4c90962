// inlay.hpp as a host uses it: linked with the shared library, beside a host's name that looks like one of ours.
#include "inlay/inlay.hpp"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#if __cplusplus >= 202002L
#include <ranges>
static_assert(std::ranges::input_range<inlay::Generation&>);
#endif

namespace {

constexpr const char* kModel = INLAY_TEST_DATA_DIR "/tiny/llama/llama.f16.gguf";
const std::vector<std::int32_t> kPrompt = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};

inlay::EngineOptions one_thread() {
    inlay::EngineOptions options;
    options.n_threads = 1;
    return options;
}

std::string read_whole(const char* path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inlay::GenerationOptions at_most(std::uint64_t n_tokens) {
    inlay::GenerationOptions options;
    options.max_new_tokens = n_tokens;
    options.flags = INLAY_GENERATION_IGNORE_END;
    return options;
}

inlay::Session new_session(const inlay::GenerationOptions& generation) {
    // The session alone keeps its cache and engine.
    inlay::Session session(inlay::Cache(inlay::Engine(kModel, one_thread())));
    session.set_generation(generation);
    session.append(kPrompt);
    return session;
}

// A host type with the name of one in the library's own namespace.
struct Cache {
    int value = 7;
};

}  // namespace

TEST_CASE("a handle is empty, shared or moved", "[cpp]") {
    static_assert(std::is_copy_constructible_v<inlay::Engine> && std::is_copy_constructible_v<inlay::Cache>);
    static_assert(!std::is_copy_constructible_v<inlay::Session> && !std::is_copy_assignable_v<inlay::Session>);
    CHECK(Cache().value == 7);

    inlay::Engine empty;
    CHECK_FALSE(empty);
    inlay::Engine engine(kModel, one_thread());
    const inlay::Engine copy = engine;
    CHECK(copy.get() == engine.get());
    inlay::Engine moved = std::move(engine);
    CHECK(moved.get() == copy.get());
    CHECK(engine.get() == nullptr);
    try {
        (void)engine.info();
        FAIL("a moved-from handle was accepted");
    } catch (const inlay::Error& error) {
        CHECK(error.code() == INLAY_E_INVALID_ARGUMENT);
        CHECK(std::string(error.name()) == "INLAY_E_INVALID_ARGUMENT");
    }
    moved = inlay::Engine();
    CHECK(copy.info().n_vocabulary == 384);
    engine = copy;
    CHECK(engine.get() == copy.get());
}

TEST_CASE("C code hands its reference over", "[cpp]") {
    const inlay::Engine engine(kModel, one_thread());
    inlay_engine_retain(engine.get());
    const inlay::Engine adopted = inlay::Engine::adopt(engine.get());
    CHECK(adopted.info().n_layers == engine.info().n_layers);
}

TEST_CASE("an error carries the status and the sentence", "[cpp]") {
    try {
        inlay::Engine engine("no such file.gguf");
        FAIL("a missing file was opened");
    } catch (const inlay::Error& error) {
        CHECK(error.code() == INLAY_E_IO);
        CHECK(std::string(error.what()).find("no such file.gguf") != std::string::npos);
    }
    CHECK_THROWS_AS(inlay::estimate_memory("no such file.gguf"), std::runtime_error);
}

TEST_CASE("text and ids", "[cpp]") {
    inlay::EngineOptions options;
    options.flags = INLAY_ENGINE_VOCABULARY_ONLY;
    const inlay::Engine engine(kModel, options);
    CHECK(engine.tokenize("").empty());
    CHECK(engine.detokenize({}).empty());
    const std::string text = "Inlay speaks UTF-8: \xc3\xa4\xe2\x82\xac. " + std::string(5000, 'x');
    const std::vector<std::int32_t> ids = engine.tokenize(text);
    CHECK(engine.detokenize(ids) == text);
    std::string joined;
    for (const std::int32_t id : ids) joined += engine.token_text(id);
    CHECK(joined == text);
    const std::int32_t eos = engine.special_token(INLAY_SPECIAL_EOS);
    if (eos >= 0) CHECK(engine.is_end(eos));
    CHECK_FALSE(engine.is_end(-1));

    bool found = false;
    for (const auto& [key, value] : engine.metadata())
        found = found || (key == "general.architecture" && value == "llama");
    CHECK(found);
}

TEST_CASE("the text of a session is a range", "[cpp]") {
    inlay::Session session = new_session({});
    std::string text;
    for (const std::string_view part : session.generate(at_most(32))) {
        CHECK_FALSE(part.empty());
        text += part;
    }
    CHECK(session.length() == kPrompt.size() + 32);

    const std::vector<std::int32_t> generated = session.tokens(kPrompt.size());
    inlay::Session again = new_session(at_most(32));
    std::string text_again;
    std::vector<std::int32_t> tokens_again;
    CHECK(again.run([&](const inlay::Chunk& chunk) {
        text_again += chunk.text();
        tokens_again.insert(tokens_again.end(), chunk.begin(), chunk.end());
        return true;
    }) == INLAY_FINISH_LENGTH);
    CHECK(text_again == text);
    CHECK(tokens_again == generated);
}

TEST_CASE("a loop that was left goes on, also when the session has moved", "[cpp]") {
    inlay::Session whole = new_session(at_most(24));
    whole.run();

    inlay::Session session = new_session(at_most(24));
    inlay::Generation generation = session.generate();
    auto it = generation.begin();
    const inlay::Session moved = std::move(session);
    ++it;
    CHECK(generation.finish_reason() == INLAY_FINISH_NONE);
    while (it != generation.end()) ++it;
    CHECK(generation.finish_reason() == INLAY_FINISH_LENGTH);
    CHECK(moved.tokens() == whole.tokens());
}

TEST_CASE("what a callback throws arrives", "[cpp]") {
    inlay::Session session = new_session(at_most(8));
    std::size_t n_calls = 0;
    CHECK_THROWS_WITH(session.run([&](const inlay::Chunk&) -> bool {
        ++n_calls;
        throw std::logic_error("the host's own");
    }),
                      "the host's own");
    CHECK(n_calls == 1);
    CHECK(session.run([](const inlay::Chunk&) { return false; }) == INLAY_FINISH_CANCELLED);
    CHECK(session.run() == INLAY_FINISH_LENGTH);
    CHECK(session.length() == kPrompt.size() + 8);

    CHECK_THROWS_AS(inlay::Engine(kModel, one_thread(), [](std::uint64_t, std::uint64_t) -> bool { throw 42; }), int);
    try {
        inlay::Engine engine(kModel, one_thread(), [](std::uint64_t, std::uint64_t) { return false; });
        FAIL("loading was not cancelled");
    } catch (const inlay::Error& error) {
        CHECK(error.code() == INLAY_E_CANCELLED);
    }
}

TEST_CASE("progress is told in order", "[cpp]") {
    std::uint64_t last = 0, whole = 0;
    inlay::Engine engine(kModel, one_thread(), [&](std::uint64_t done, std::uint64_t total) {
        CHECK(done >= last);
        CHECK(done <= total);
        last = done;
        whole = total;
        return true;
    });
    CHECK(whole > 0);
    CHECK(last == whole);
}

TEST_CASE("a canceller outlives the session's owner", "[cpp]") {
    inlay::Session session = new_session(at_most(100000));
    const inlay::Canceller canceller = session.canceller();
    std::thread other([canceller] { canceller.cancel(); });
    const std::int32_t finish = session.run();
    other.join();
    CHECK((finish == INLAY_FINISH_CANCELLED || finish == INLAY_FINISH_LENGTH));
    session = inlay::Session();
    canceller.cancel();
}

TEST_CASE("one step of several sessions", "[cpp]") {
    const inlay::Engine engine(kModel, one_thread());
    const inlay::Cache cache(engine);
    inlay::Session first(cache), second(cache), empty(cache);
    first.append(kPrompt);
    second.append({4, 5});
    const std::vector<inlay::StepResult> results = inlay::step({&first, &empty, &second});
    REQUIRE(results.size() == 3);
    CHECK(results[0].chunk.size() == 1);
    CHECK(results[1].status == INLAY_E_STATE);
    CHECK_FALSE(results[1].error.empty());
    CHECK(results[2].status == INLAY_OK);
    CHECK(results[2].error.empty());
    CHECK(engine.info().n_steps == 1);
    CHECK_THROWS_AS(inlay::step({&first, nullptr}), inlay::Error);
    CHECK(inlay::step({}).empty());
}

TEST_CASE("logits of a forward pass", "[cpp]") {
    const inlay::Engine engine(kModel, one_thread());
    inlay::CacheOptions options;
    options.bytes = inlay::Cache::bytes_for(engine, kPrompt.size());
    inlay::Cache cache(engine, options);
    CHECK(cache.stats().budget_bytes >= options.bytes);
    inlay::Session session(cache);
    session.forward(kPrompt.data(), kPrompt.size(), 3);
    const inlay::Logits logits = session.logits();
    CHECK(logits.n_rows == kPrompt.size() - 3);
    CHECK(logits.n_vocabulary == 384);
    CHECK(logits.row(1) == logits.data + 384);
    CHECK(session.stats().n_computed_tokens == kPrompt.size());
    session.truncate(2);
    CHECK(session.length() == 2);
    session.reset();
    CHECK(session.length() == 0);
    cache.clear();
    CHECK(cache.stats().n_used_blocks == 0);
    CHECK(inlay::estimate_memory(kModel).kv_bytes_per_token > 0);
    CHECK(std::string(inlay::version()) == "0.1.0");
}

TEST_CASE("a session is saved and goes on elsewhere", "[cpp]") {
    const inlay::Engine engine(kModel, one_thread());
    inlay::Session session{inlay::Cache(engine)};
    session.append(kPrompt);
    session.next();
    const std::vector<unsigned char> saved = session.save();
    inlay::Session copy{inlay::Cache(engine)};
    const inlay::LoadResult result = copy.load(saved, INLAY_LOAD_TRUSTED);
    CHECK(result.n_tokens == session.length());
    CHECK(result.same_numerics == 1);
    CHECK(*copy.next().begin() == *session.next().begin());

    inlay::Session empty{inlay::Cache(engine)};
    CHECK_THROWS_WITH(session.save([](const void*, std::size_t) -> bool { throw std::runtime_error("disk"); }), "disk");
    CHECK_THROWS_WITH(empty.load([](void*, std::size_t) -> std::size_t { throw std::runtime_error("tape"); }), "tape");
    CHECK_THROWS_AS(session.save([](const void*, std::size_t) { return false; }), inlay::Error);
    CHECK_THROWS_AS(empty.load(std::vector<unsigned char>(saved.begin(), saved.end() - 1)), inlay::Error);
    CHECK(empty.length() == 0);
    CHECK(empty.load(saved).n_tokens == result.n_tokens);
}

TEST_CASE("pins are saved and held elsewhere", "[cpp]") {
    const inlay::Engine engine(kModel, one_thread());
    const inlay::Cache cache(engine);
    const std::vector<std::int32_t> prompt(40, 7);
    {
        inlay::Session session(cache);
        session.forward(prompt.data(), prompt.size(), prompt.size());
    }
    std::uint64_t n_held = 0;
    cache.pin(prompt, 0, &n_held);
    CHECK(n_held == 32);
    const std::vector<unsigned char> saved = cache.save();
    std::vector<unsigned char> streamed;
    cache.save([&](const void* bytes, std::size_t size) {
        const auto* begin = static_cast<const unsigned char*>(bytes);
        streamed.insert(streamed.end(), begin, begin + size);
        return true;
    });
    CHECK(streamed == saved);

    const inlay::Cache other(engine);
    CHECK_THROWS_AS(other.load(saved, 0), inlay::Error);
    const inlay::CacheLoadResult result = other.load(saved, INLAY_LOAD_TRUSTED);
    CHECK(result.n_pins == 1);
    CHECK(result.n_tokens == 32);
    CHECK(other.stats().n_used_blocks > 0);
    other.unpin(result.first_pin);
    CHECK(other.stats().n_used_blocks == 0);
    CHECK_THROWS_WITH(other.save([](const void*, std::size_t) -> bool { throw std::runtime_error("disk"); }), "disk");
    CHECK_THROWS_WITH(
        other.load([](void*, std::size_t) -> std::size_t { throw std::runtime_error("tape"); }, INLAY_LOAD_TRUSTED),
        "tape");
}

TEST_CASE("a model from memory keeps its owner as long as it is needed", "[cpp]") {
    const inlay::Engine from_file(kModel, one_thread());
    auto bytes = std::make_shared<const std::string>(read_whole(kModel));
    const std::weak_ptr<const std::string> watch = bytes;
    const std::vector<inlay::MemoryBlock> blocks{{bytes->data(), bytes->size()}};
    const inlay::Engine engine = inlay::Engine::from_memory(blocks, std::move(bytes), one_thread());
    CHECK(watch.expired());  // packed: not needed any more
    CHECK(engine.tokenize("hello") == from_file.tokenize("hello"));
    CHECK(engine.info().weight_bytes == from_file.info().weight_bytes);

    auto broken = std::make_shared<const std::string>("GGUF");
    CHECK_THROWS_AS(inlay::Engine::from_memory({{broken->data(), broken->size()}}, broken), inlay::Error);
    CHECK(broken.use_count() == 1);
}

TEST_CASE("a model from a reader, and what the reader throws", "[cpp]") {
    const std::string bytes = read_whole(kModel);
    std::size_t n_reads = 0;
    const inlay::Engine engine = inlay::Engine::from_reader(
        {bytes.size()},
        [&](std::uint32_t, std::uint64_t offset, void* buffer, std::size_t size) {
            ++n_reads;
            std::memcpy(buffer, bytes.data() + offset, size);
        },
        one_thread());
    CHECK(n_reads > 1);
    CHECK(engine.info().file_bytes == bytes.size());
    CHECK_THROWS_WITH(
        inlay::Engine::from_reader({bytes.size()}, [](std::uint32_t, std::uint64_t, void*,
                                                      std::size_t) { throw std::logic_error("the disk is gone"); }),
        "the disk is gone");
    inlay::ModelSource source;
    CHECK_THROWS_AS(inlay::estimate_memory(source), inlay::Error);
}

TEST_CASE("a log is told and kept as long as the engine", "[cpp]") {
    const auto n_records = std::make_shared<int>(0);
    const auto log = [n_records](std::int32_t, std::string_view record) {
        CHECK_FALSE(record.empty());
        ++*n_records;
        throw std::logic_error("dropped");
    };
    {
        const inlay::Engine engine(kModel, one_thread(), {}, log);
        CHECK(*n_records >= 2);
        CHECK(n_records.use_count() == 3);
    }
    CHECK(n_records.use_count() == 2);
    CHECK_THROWS_AS(inlay::Engine("no such file", one_thread(), {}, log), inlay::Error);
    CHECK(n_records.use_count() == 2);
}

TEST_CASE("engines share workers, also lent ones", "[cpp]") {
    inlay::WorkersOptions options;
    options.n_threads = 2;
    options.flags = INLAY_WORKERS_LENT;
    const inlay::Workers workers(options);
    std::thread lent([workers] { workers.run(); });
    inlay::EngineOptions engine_options;
    engine_options.workers = workers.get();
    const inlay::Engine engine(kModel, engine_options);
    const inlay::Engine other(kModel, engine_options);
    CHECK(other.info().n_threads == 2);
    workers.stop();
    lent.join();
    CHECK_THROWS_AS(inlay::Workers().run(), inlay::Error);
}
