// Each allocation of an opening fails in turn: the call is INLAY_E_OUT_OF_MEMORY, nothing of the host's is held, and
// the next call succeeds.
#include <cstdlib>

#include "base/allocation.h"
#include "model_path.h"
#include "saved_session.h"
#include "tests/model/gguf_parts.h"
#include "tests/npy.h"
#include "tests/sanitized.h"
#include "tests/temporary_directory.h"

using namespace inlay::test;

namespace {

// Calls `call(&error)` with a failing allocation until none fails; `check` follows each failure. Later ones are much
// alike, so that their distance grows.
template <typename Call, typename Check>
int64_t fail_each_allocation(const Call& call, const Check& check) {
    int64_t n_failed = 0;
    for (int64_t n = 0;; n += 1 + n / (kSlowed ? 10 : 50)) {
        inlay_error* error = nullptr;
        inlayx_fail_allocation(n);
        const int32_t status = call(&error);
        const bool has_failed = inlayx_fail_allocation(-1) < 0;
        const ErrorPtr owner(error);
        if (!has_failed) {
            CHECK(status == INLAY_OK);
            return n_failed;
        }
        ++n_failed;
        CHECK(status == INLAY_E_OUT_OF_MEMORY);
        CHECK(inlay_error_code(error) == INLAY_E_OUT_OF_MEMORY);
        CHECK_THAT(inlay_error_message(error), Catch::Contains("memory"));
        check();
    }
}

// What a host provides to one engine.
struct Host {
    std::vector<std::string> parts = GgufParts(read_file(tiny_model())).split(2);
    uint64_t sizes[2] = {parts[0].size(), parts[1].size()};
    const void* blocks[2] = {parts[0].data(), parts[1].data()};
    int n_reserved = 0;
    int n_releases = 0;
    inlay_page_provider pages{};
    inlay_logger logger{};

    Host() {
        pages.struct_size = sizeof pages;
        pages.user = this;
        pages.reserve = [](void* user, size_t bytes, uint32_t) -> void* {
            ++static_cast<Host*>(user)->n_reserved;
            return std::memset(std::aligned_alloc(4096, bytes), 0, bytes);
        };
        pages.release = [](void* user, void* address, size_t) {
            --static_cast<Host*>(user)->n_reserved;
            std::free(address);
        };
        pages.on_release = count_release;
        logger.struct_size = sizeof logger;
        logger.user = this;
        logger.log = [](void*, int32_t, const char*, size_t) {};
        logger.on_release = count_release;
    }

    inlay_model_source source(bool in_memory) {
        inlay_model_source source{};
        source.struct_size = sizeof source;
        source.n_parts = 2;
        source.part_sizes = sizes;
        source.user = this;
        source.on_release = count_release;
        if (in_memory)
            source.blocks = blocks;
        else
            source.read = [](void* user, uint32_t part, uint64_t offset, void* buffer, size_t size) -> int32_t {
                std::memcpy(buffer, static_cast<Host*>(user)->parts[part].data() + offset, size);
                return 0;
            };
        return source;
    }
    inlay_engine_options options(uint32_t flags = 0) {
        inlay_engine_options options = engine_options();
        options.flags = flags;
        options.pages = &pages;
        options.logger = &logger;
        return options;
    }
    void check_nothing_held() const {
        CHECK(n_reserved == 0);
        CHECK(n_releases == 0);
    }

    static void count_release(void* user) { ++static_cast<Host*>(user)->n_releases; }
};

// A pool of one thread makes every run the same.
struct OneThread {
    inlay_workers* workers = nullptr;

    OneThread() {
        inlay_workers_options options{};
        options.struct_size = sizeof options;
        options.n_threads = 1;
        REQUIRE(inlay_workers_create(&options, &workers, nullptr) == INLAY_OK);
    }
    ~OneThread() { inlay_workers_release(workers); }
    OneThread(const OneThread&) = delete;
    OneThread& operator=(const OneThread&) = delete;
};

}  // namespace

TEST_CASE("opening from a source fails at each allocation and takes nothing") {
    const std::vector<float> expected = logits_of(open_tiny().get());
    const OneThread one;
    for (const bool in_memory : {true, false}) {
        Host host;
        inlay_engine_options options = host.options();
        options.n_threads = 0;
        options.workers = one.workers;
        const inlay_model_source source = host.source(in_memory);
        inlay_engine* engine = nullptr;
        const int64_t n_failed = fail_each_allocation(
            [&](inlay_error** error) { return inlay_engine_open_source(&source, &options, &engine, error); },
            [&] {
                CHECK(engine == nullptr);
                host.check_nothing_held();
            });
        CHECK(n_failed > 30);
        CHECK(host.n_releases == 1);  // of the source
        CHECK(logits_of(engine) == expected);
        inlay_engine_release(engine);
        CHECK(host.n_releases == 3);
        CHECK(host.n_reserved == 0);
    }
}

TEST_CASE("opening a split model's files fails at each allocation and takes nothing") {
    const OneThread one;
    Host host;
    const TemporaryDirectory directory;
    const std::string path = directory.write("m-00001-of-00002.gguf", host.parts[0]);
    directory.write("m-00002-of-00002.gguf", host.parts[1]);
    for (const uint32_t flags : {0u, INLAY_ENGINE_MAP_FILE}) {
        host.n_releases = 0;
        inlay_engine_options options = host.options(flags);
        options.n_threads = 0;
        options.workers = one.workers;
        inlay_engine* engine = nullptr;
        const int64_t n_failed = fail_each_allocation(
            [&](inlay_error** error) { return inlay_engine_open(path.data(), path.size(), &options, &engine, error); },
            [&] { host.check_nothing_held(); });
        CHECK(n_failed > 30);
        inlay_engine_release(engine);
        CHECK(host.n_releases == 2);
    }
}

TEST_CASE("an estimate from a source fails at each allocation") {
    Host host;
    const inlay_model_source source = host.source(true);
    inlay_estimate estimate{};
    estimate.struct_size = sizeof estimate;
    CHECK(fail_each_allocation(
              [&](inlay_error** error) { return inlay_estimate_source(&source, nullptr, &estimate, error); },
              [&] { CHECK(estimate.weight_bytes == 0); }) > 10);
    CHECK(estimate.weight_bytes > 0);
    CHECK(host.n_releases == 0);
}

TEST_CASE("creating workers fails at each allocation") {
    for (const uint32_t flags : {0u, INLAY_WORKERS_LENT}) {
        inlay_workers_options options{};
        options.struct_size = sizeof options;
        options.n_threads = 3;
        options.flags = flags;
        inlay_workers* workers = nullptr;
        CHECK(fail_each_allocation([&](inlay_error** error) { return inlay_workers_create(&options, &workers, error); },
                                   [&] { CHECK(workers == nullptr); }) >= 3);
        inlay_workers_release(workers);
    }
}

TEST_CASE("saving and loading fail at each allocation, and change nothing") {
    const EnginePtr engine = open_model((data_dir() / "tiny/gemma3_text/gemma3_text.f32.gguf").string());
    const CachePtr cache = create_cache(engine.get());
    const SessionPtr original = create_session(cache.get());
    const auto next = [](const SessionPtr& session) {
        inlay_chunk chunk = empty_chunk();
        int32_t status = INLAY_MORE;
        while (status == INLAY_MORE) status = inlay_session_next(session.get(), &chunk, nullptr);
        REQUIRE(status == INLAY_OK);
        return chunk.tokens[0];
    };
    std::vector<int32_t> prompt(90);
    for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<int32_t>(i % 200);
    append(original.get(), prompt);
    next(original);
    const std::string bytes = saved(original.get());

    std::string written;
    written.reserve(2 * bytes.size());  // what the host writes to takes no memory of its own
    const inlay_save_callback write = [](void* user, const void* data, size_t size) -> int32_t {
        static_cast<std::string*>(user)->append(static_cast<const char*>(data), size);
        return 0;
    };
    CHECK(fail_each_allocation(
              [&](inlay_error** error) {
                  written.clear();
                  return inlay_session_save(original.get(), write, &written, error);
              },
              [&] { CHECK(length_of(original.get()) == 91); }) > 3);
    CHECK(written == bytes);
    std::string buffer(bytes.size(), '?');
    const std::string untouched = buffer;
    size_t needed = 0;
    CHECK(fail_each_allocation(
              [&](inlay_error** error) {
                  return inlay_session_save_to_buffer(original.get(), buffer.data(), buffer.size(), &needed, error);
              },
              [&] {
                  CHECK(buffer == untouched);
                  CHECK(needed == 0);
              }) > 3);
    CHECK(buffer == bytes);

    for (const uint32_t flags : {0u, INLAY_LOAD_TRUSTED}) {
        const CachePtr other = create_cache(engine.get());
        const SessionPtr session = create_session(other.get());
        CHECK(fail_each_allocation(
                  [&](inlay_error** error) {
                      ByteReader reader{bytes};
                      return inlay_session_load(session.get(), flags, ByteReader::read, &reader, nullptr, error);
                  },
                  [&] {
                      inlay_cache_stats stats{};
                      stats.struct_size = sizeof stats;
                      REQUIRE(inlay_cache_get_stats(other.get(), &stats, nullptr) == INLAY_OK);
                      CHECK(stats.n_used_blocks == 0);
                      CHECK(length_of(session.get()) == 0);
                  }) > 5);
        const SessionPtr same = create_session(cache.get());
        REQUIRE(load(same.get(), bytes).status == INLAY_OK);
        for (int i = 0; i < 5; ++i) CHECK(next(session) == next(same));
    }
}

TEST_CASE("saving and loading pins fail at each allocation, and change nothing") {
    const EnginePtr engine = open_model((data_dir() / "tiny/gemma3_text/gemma3_text.f32.gguf").string());
    const CachePtr cache = create_cache(engine.get());
    const SessionPtr session = create_session(cache.get());
    std::vector<int32_t> prompt(90);
    for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<int32_t>(i % 200);
    append(session.get(), prompt);
    inlay_chunk chunk = empty_chunk();
    REQUIRE(inlay_session_next(session.get(), &chunk, nullptr) >= 0);
    for (const size_t n : {90, 50}) {
        uint64_t number = 0;
        REQUIRE(inlay_cache_pin(cache.get(), prompt.data(), n, 0, &number, nullptr, nullptr) == INLAY_OK);
    }
    REQUIRE(inlay_session_reset(session.get(), nullptr) == INLAY_OK);
    size_t needed = 0;
    REQUIRE(inlay_cache_save_to_buffer(cache.get(), nullptr, 0, &needed, nullptr) == INLAY_OK);
    std::string bytes(needed, '?');
    const std::string untouched = bytes;
    CHECK(fail_each_allocation(
              [&](inlay_error** error) {
                  return inlay_cache_save_to_buffer(cache.get(), bytes.data(), bytes.size(), &needed, error);
              },
              [&] { CHECK(bytes == untouched); }) > 5);

    const CachePtr other = create_cache(engine.get());
    inlay_cache_load_result result{};
    result.struct_size = sizeof result;
    CHECK(fail_each_allocation(
              [&](inlay_error** error) {
                  return inlay_cache_load_from_buffer(other.get(), INLAY_LOAD_TRUSTED, bytes.data(), bytes.size(),
                                                      &result, error);
              },
              [&] {
                  CHECK(stats_of(other).n_used_blocks == 0);
                  CHECK(stats_of(other).n_cached_blocks == 0);
                  CHECK(result.n_pins == 0);
              }) > 10);
    CHECK(result.n_pins == 2);
    CHECK(result.n_tokens == 80 + 48);
    CHECK(stats_of(other).n_used_blocks == stats_of(cache).n_used_blocks);
}
