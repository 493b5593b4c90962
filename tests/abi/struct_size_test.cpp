// The rules for structs that grow: whatever size a host says, the library reads and writes no byte beyond it, reads
// what both sides know, and refuses what it does not know.
#include <inlay/inlay.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

namespace {

template <typename Handle, void (*release)(const Handle*)>
struct Release {
    void operator()(Handle* handle) const { release(handle); }
};
using Engine = std::unique_ptr<inlay_engine, Release<inlay_engine, inlay_engine_release>>;
using Cache = std::unique_ptr<inlay_cache, Release<inlay_cache, inlay_cache_release>>;
using Session = std::unique_ptr<inlay_session, Release<inlay_session, inlay_session_release>>;

const std::string kModel = std::string(INLAY_TEST_DATA_DIR) + "/tiny/llama/llama.f16.gguf";
constexpr unsigned char kGuard = 0xA5;

// A struct as raw bytes, larger than any version of it; aligned as a host's struct is.
struct Bytes {
    alignas(16) unsigned char data[512];

    // `size` bytes that begin with the size and are `fill` otherwise, before guards.
    Bytes(uint32_t size, unsigned char fill) {
        std::memset(data, kGuard, sizeof data);
        std::memset(data, fill, size);
        std::memcpy(data, &size, sizeof size);
    }
    template <typename T>
    T* as() {
        return reinterpret_cast<T*>(data);
    }
    bool guarded_from(size_t begin) const {
        return std::all_of(data + begin, data + sizeof data, [](unsigned char byte) { return byte == kGuard; });
    }
};

struct Handles {
    Engine engine;
    Cache cache;
    Session session;

    Handles() {
        inlay_engine* e = nullptr;
        inlay_cache* c = nullptr;
        inlay_session* s = nullptr;
        REQUIRE(inlay_engine_open(kModel.c_str(), SIZE_MAX, nullptr, &e, nullptr) == INLAY_OK);
        engine.reset(e);
        REQUIRE(inlay_cache_create(e, nullptr, &c, nullptr) == INLAY_OK);
        cache.reset(c);
        REQUIRE(inlay_session_create(c, nullptr, &s, nullptr) == INLAY_OK);
        session.reset(s);
        const int32_t prompt[] = {1, 2, 3};
        REQUIRE(inlay_session_append_tokens(s, prompt, 3, nullptr) == INLAY_OK);
        inlay_chunk chunk{};
        chunk.struct_size = sizeof chunk;
        REQUIRE(inlay_session_next(s, &chunk, nullptr) == INLAY_OK);
    }
};

// A kind of options: its size in this header, its default writer and a call that reads it.
struct Options {
    const char* name;
    uint32_t size;
    std::function<int32_t(Bytes&, uint32_t)> init;
    std::function<int32_t(Bytes&)> read;
};

std::vector<Options> all_options(const Handles& handles) {
    return {
        {"inlay_workers_options", sizeof(inlay_workers_options),
         [](Bytes& bytes, uint32_t size) {
             return inlay_workers_options_init(bytes.as<inlay_workers_options>(), size);
         },
         [](Bytes& bytes) {
             inlay_workers* workers = nullptr;
             const int32_t status = inlay_workers_create(bytes.as<inlay_workers_options>(), &workers, nullptr);
             CHECK((workers != nullptr) == (status == INLAY_OK));
             inlay_workers_release(workers);
             return status;
         }},
        {"inlay_engine_options", sizeof(inlay_engine_options),
         [](Bytes& bytes, uint32_t size) { return inlay_engine_options_init(bytes.as<inlay_engine_options>(), size); },
         [](Bytes& bytes) {
             inlay_engine* engine = nullptr;
             const int32_t status =
                 inlay_engine_open(kModel.c_str(), SIZE_MAX, bytes.as<inlay_engine_options>(), &engine, nullptr);
             CHECK((engine != nullptr) == (status == INLAY_OK));
             inlay_engine_release(engine);
             return status;
         }},
        {"inlay_cache_options", sizeof(inlay_cache_options),
         [](Bytes& bytes, uint32_t size) { return inlay_cache_options_init(bytes.as<inlay_cache_options>(), size); },
         [&](Bytes& bytes) {
             inlay_cache* cache = nullptr;
             const int32_t status =
                 inlay_cache_create(handles.engine.get(), bytes.as<inlay_cache_options>(), &cache, nullptr);
             CHECK((cache != nullptr) == (status == INLAY_OK));
             inlay_cache_release(cache);
             uint64_t n_bytes = 0;
             CHECK(inlay_cache_bytes_for(handles.engine.get(), bytes.as<inlay_cache_options>(), 100, &n_bytes,
                                         nullptr) == status);
             return status;
         }},
        {"inlay_session_options", sizeof(inlay_session_options),
         [](Bytes& bytes, uint32_t size) {
             return inlay_session_options_init(bytes.as<inlay_session_options>(), size);
         },
         [&](Bytes& bytes) {
             inlay_session* session = nullptr;
             const int32_t status =
                 inlay_session_create(handles.cache.get(), bytes.as<inlay_session_options>(), &session, nullptr);
             CHECK((session != nullptr) == (status == INLAY_OK));
             inlay_session_release(session);
             return status;
         }},
        {"inlay_generation_options", sizeof(inlay_generation_options),
         [](Bytes& bytes, uint32_t size) {
             return inlay_generation_options_init(bytes.as<inlay_generation_options>(), size);
         },
         [&](Bytes& bytes) {
             return inlay_session_set_generation(handles.session.get(), bytes.as<inlay_generation_options>(), nullptr);
         }},
        {"inlay_estimate_options", sizeof(inlay_estimate_options),
         [](Bytes& bytes, uint32_t size) {
             return inlay_estimate_options_init(bytes.as<inlay_estimate_options>(), size);
         },
         [](Bytes& bytes) {
             inlay_estimate estimate{};
             estimate.struct_size = sizeof estimate;
             return inlay_estimate_memory(kModel.c_str(), SIZE_MAX, bytes.as<inlay_estimate_options>(), &estimate,
                                          nullptr);
         }},
    };
}

// Loads what the session is into another one.
int32_t load_again(const Handles& handles, inlay_load_result* result) {
    std::string saved;
    const inlay_save_callback write = [](void* user, const void* bytes, size_t size) -> int32_t {
        static_cast<std::string*>(user)->append(static_cast<const char*>(bytes), size);
        return 0;
    };
    REQUIRE(inlay_session_save(handles.session.get(), write, &saved, nullptr) == INLAY_OK);
    inlay_session* raw = nullptr;
    REQUIRE(inlay_session_create(handles.cache.get(), nullptr, &raw, nullptr) == INLAY_OK);
    const Session session(raw);
    const inlay_load_callback read = [](void* user, void* buffer, size_t size, size_t* n_read) -> int32_t {
        auto& rest = *static_cast<std::string*>(user);
        *n_read = std::min(size, rest.size());
        std::memcpy(buffer, rest.data(), *n_read);
        rest.erase(0, *n_read);
        return 0;
    };
    return inlay_session_load(session.get(), 0, read, &saved, result, nullptr);
}

// Loads the cache's pins, of which there are none.
int32_t load_pins_again(const Handles& handles, inlay_cache_load_result* result) {
    std::vector<unsigned char> saved(1 << 16);
    size_t needed = 0;
    REQUIRE(inlay_cache_save_to_buffer(handles.cache.get(), saved.data(), saved.size(), &needed, nullptr) == INLAY_OK);
    return inlay_cache_load_from_buffer(handles.cache.get(), INLAY_LOAD_TRUSTED, saved.data(), needed, result, nullptr);
}

// A kind of results: its size in this header and the call that fills it.
struct Results {
    const char* name;
    uint32_t size;
    std::function<int32_t(Bytes&)> fill;
};

std::vector<Results> all_results(const Handles& handles) {
    return {
        {"inlay_engine_info", sizeof(inlay_engine_info),
         [&](Bytes& bytes) {
             return inlay_engine_get_info(handles.engine.get(), bytes.as<inlay_engine_info>(), nullptr);
         }},
        {"inlay_cache_stats", sizeof(inlay_cache_stats),
         [&](Bytes& bytes) {
             return inlay_cache_get_stats(handles.cache.get(), bytes.as<inlay_cache_stats>(), nullptr);
         }},
        {"inlay_session_stats", sizeof(inlay_session_stats),
         [&](Bytes& bytes) {
             return inlay_session_get_stats(handles.session.get(), bytes.as<inlay_session_stats>(), nullptr);
         }},
        {"inlay_load_result", sizeof(inlay_load_result),
         [&](Bytes& bytes) { return load_again(handles, bytes.as<inlay_load_result>()); }},
        {"inlay_cache_load_result", sizeof(inlay_cache_load_result),
         [&](Bytes& bytes) { return load_pins_again(handles, bytes.as<inlay_cache_load_result>()); }},
        {"inlay_estimate", sizeof(inlay_estimate),
         [](Bytes& bytes) {
             return inlay_estimate_memory(kModel.c_str(), SIZE_MAX, nullptr, bytes.as<inlay_estimate>(), nullptr);
         }},
        {"inlay_chunk", sizeof(inlay_chunk),
         [&](Bytes& bytes) { return inlay_session_next(handles.session.get(), bytes.as<inlay_chunk>(), nullptr); }},
    };
}

}  // namespace

TEST_CASE("options_init writes exactly the bytes it is told, for every size a host may have") {
    const Handles handles;
    for (const Options& options : all_options(handles)) {
        for (uint32_t size = 8; size <= options.size + 24; size += 4) {
            INFO(options.name << " of " << size << " bytes");
            Bytes bytes(0, 0);
            std::memset(bytes.data, kGuard, sizeof bytes.data);
            REQUIRE(options.init(bytes, size) == INLAY_OK);
            uint32_t written = 0;
            std::memcpy(&written, bytes.data, sizeof written);
            CHECK(written == size);
            CHECK(bytes.guarded_from(size));
            CHECK(std::none_of(bytes.data + 4, bytes.data + size, [](unsigned char byte) { return byte == kGuard; }));
            CHECK(options.read(bytes) == INLAY_OK);
        }
        for (const uint32_t size : {0u, 3u, 7u}) {
            INFO(options.name << " of " << size << " bytes");
            Bytes bytes(0, 0);
            std::memset(bytes.data, kGuard, sizeof bytes.data);
            CHECK(options.init(bytes, size) == INLAY_E_INVALID_ARGUMENT);
            CHECK(bytes.guarded_from(0));
        }
    }
}

TEST_CASE("options of a size and zeros are valid, and bytes behind them are not read") {
    const Handles handles;
    for (const Options& options : all_options(handles)) {
        for (uint32_t size = 8; size <= options.size; size += 4) {
            INFO(options.name << " of " << size << " bytes");
            Bytes bytes(size, 0);  // behind them: guards, which are not zero
            CHECK(options.read(bytes) == INLAY_OK);
            CHECK(bytes.guarded_from(size));
        }
    }
}

TEST_CASE("options larger than the library's are read when the rest is zero, and refused when it is not") {
    const Handles handles;
    for (const Options& options : all_options(handles)) {
        for (const uint32_t extra : {1u, 4u, 8u, 64u, 400u}) {
            INFO(options.name << " with " << extra << " bytes more");
            const uint32_t size = options.size + extra;
            Bytes zeros(size, 0);
            CHECK(options.read(zeros) == INLAY_OK);
            for (const uint32_t position : {options.size, size - 1}) {
                Bytes later(size, 0);
                later.data[position] = 1;
                CHECK(options.read(later) == INLAY_E_UNSUPPORTED);
            }
        }
    }
}

TEST_CASE("a size that no version can have is refused") {
    const Handles handles;
    for (const uint32_t size : {0u, 1u, 3u}) {
        for (const Options& options : all_options(handles)) {
            INFO(options.name << " of " << size << " bytes");
            Bytes bytes(4, 0);
            std::memcpy(bytes.data, &size, sizeof size);
            CHECK(options.read(bytes) == INLAY_E_INVALID_ARGUMENT);
        }
        for (const Results& results : all_results(handles)) {
            INFO(results.name << " of " << size << " bytes");
            Bytes bytes(4, 0);
            std::memcpy(bytes.data, &size, sizeof size);
            CHECK(results.fill(bytes) == INLAY_E_INVALID_ARGUMENT);
            CHECK(bytes.guarded_from(4));
        }
    }
}

TEST_CASE("results are filled as far as both sides know") {
    const Handles handles;
    for (const Results& results : all_results(handles)) {
        for (uint32_t size = 8; size <= results.size + 24; size += 4) {
            INFO(results.name << " of " << size << " bytes");
            Bytes bytes(size, 0);
            REQUIRE(results.fill(bytes) >= INLAY_OK);
            uint32_t said = 0;
            std::memcpy(&said, bytes.data, sizeof said);
            CHECK(said == size);
            CHECK(bytes.guarded_from(size));
        }
    }

    // The part that a smaller struct gets is the part that the whole one has.
    Bytes whole(sizeof(inlay_engine_info), 0);
    REQUIRE(inlay_engine_get_info(handles.engine.get(), whole.as<inlay_engine_info>(), nullptr) == INLAY_OK);
    Bytes part(16, 0);
    REQUIRE(inlay_engine_get_info(handles.engine.get(), part.as<inlay_engine_info>(), nullptr) == INLAY_OK);
    CHECK(std::memcmp(whole.data + 4, part.data + 4, 12) == 0);
    CHECK(whole.as<inlay_engine_info>()->n_vocabulary > 0);
}

// Structs that have no defaults, for they hold what only the host can say.
TEST_CASE("what a host provides is read as far as both sides know, and refused beyond when it is not zero") {
    inlay_page_provider pages{};
    pages.reserve = [](void*, size_t bytes, uint32_t) -> void* {
        return std::memset(std::aligned_alloc(4096, bytes), 0, bytes);
    };
    pages.release = [](void*, void* address, size_t) { std::free(address); };
    inlay_logger logger{};
    logger.log = [](void*, int32_t, const char*, size_t) {};
    std::string model;
    {
        std::ifstream file(kModel, std::ios::binary);
        model.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    const uint64_t model_size = model.size();
    const void* const block = model.data();
    inlay_model_source source{};
    source.n_parts = 1;
    source.part_sizes = &model_size;
    source.blocks = &block;

    struct Provided {
        const char* name;
        const void* filled;
        uint32_t size;
        uint32_t least;  // where the last field that must be set ends
        std::function<int32_t(Bytes&)> read;
    };
    const auto open_with = [](const inlay_engine_options& options) {
        inlay_engine* engine = nullptr;
        const int32_t status = inlay_engine_open(kModel.c_str(), SIZE_MAX, &options, &engine, nullptr);
        inlay_engine_release(engine);
        return status;
    };
    inlay_engine_options options{};
    options.struct_size = sizeof options;
    const Provided all[] = {{"inlay_page_provider", &pages, sizeof pages, 48,
                             [&](Bytes& bytes) {
                                 inlay_engine_options with = options;
                                 with.pages = bytes.as<inlay_page_provider>();
                                 return open_with(with);
                             }},
                            {"inlay_logger", &logger, sizeof logger, 16,
                             [&](Bytes& bytes) {
                                 inlay_engine_options with = options;
                                 with.logger = bytes.as<inlay_logger>();
                                 return open_with(with);
                             }},
                            {"inlay_model_source", &source, sizeof source, 24, [&](Bytes& bytes) {
                                 inlay_engine* engine = nullptr;
                                 const int32_t status = inlay_engine_open_source(bytes.as<inlay_model_source>(),
                                                                                 nullptr, &engine, nullptr);
                                 inlay_engine_release(engine);
                                 return status;
                             }}};
    for (const Provided& provided : all)
        for (uint32_t size = 8; size <= provided.size + 24; size += 4) {
            INFO(provided.name << " of " << size << " bytes");
            Bytes bytes(size, 0);
            std::memcpy(bytes.data + 4, static_cast<const unsigned char*>(provided.filled) + 4,
                        std::min(size, provided.size) - 4);
            // Half a pointer is none: hosts have whole fields.
            if (size % 8 != 0 && size < provided.size) continue;
            CHECK(provided.read(bytes) == (size < provided.least ? INLAY_E_INVALID_ARGUMENT : INLAY_OK));
            CHECK(bytes.guarded_from(size));
            if (size <= provided.size) continue;
            bytes.data[size - 1] = 1;
            CHECK(provided.read(bytes) == INLAY_E_UNSUPPORTED);
        }
}
