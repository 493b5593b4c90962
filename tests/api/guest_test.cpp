// What a host must not notice: output, memory that grows, processor time while nothing is asked.
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "model_path.h"
#include "resident_memory.h"
#include "sanitized.h"

using namespace inlay::test;

namespace {

// Both output streams of the process go into a file while it lives.
class OutputToFile {
public:
    explicit OutputToFile(const std::string& path) {
        std::fflush(nullptr);
        const int file = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
        REQUIRE(file >= 0);
        for (int stream : {1, 2}) {
            before_[stream - 1] = dup(stream);
            dup2(file, stream);
        }
        close(file);
    }
    ~OutputToFile() {
        std::fflush(nullptr);
        for (int stream : {1, 2}) {
            dup2(before_[stream - 1], stream);
            close(before_[stream - 1]);
        }
    }
    OutputToFile(const OutputToFile&) = delete;
    OutputToFile& operator=(const OutputToFile&) = delete;

private:
    int before_[2];
};

// Opens, generates and closes all again. Returns the number of calls that did what they should.
int whole_use(const std::string& path, uint32_t n_threads) {
    int n_right = 0;
    inlay_engine_options options{};
    options.struct_size = sizeof options;
    options.n_threads = n_threads;
    inlay_engine* engine = nullptr;
    inlay_cache* cache = nullptr;
    inlay_session* session = nullptr;
    inlay_chunk chunk = empty_chunk();
    n_right += inlay_engine_open(path.c_str(), SIZE_MAX, &options, &engine, nullptr) == INLAY_OK;
    n_right += inlay_cache_create(engine, nullptr, &cache, nullptr) == INLAY_OK;
    n_right += inlay_session_create(cache, nullptr, &session, nullptr) == INLAY_OK;
    n_right += inlay_session_append_text(session, "Some words of a text", SIZE_MAX, 1, nullptr) == INLAY_OK;
    for (int i = 0; i < 3; ++i) n_right += inlay_session_next(session, &chunk, nullptr) >= 0;
    inlay_session_release(session);
    inlay_cache_release(cache);
    inlay_engine_release(engine);
    return n_right;
}
constexpr int kCallsOfWholeUse = 7;

double processor_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

TEST_CASE("nothing is printed, in success and in failure") {
    const std::string path = (std::filesystem::temp_directory_path() / "inlay_output_test.txt").string();
    int n_right = 0;
    int32_t missing = 0, damaged = 0;
    {
        const OutputToFile output(path);
        n_right = whole_use(tiny_model(), 2);
        inlay_engine* engine = nullptr;
        missing = inlay_engine_open("no/such/file", SIZE_MAX, nullptr, &engine, nullptr);
        damaged = inlay_engine_open((data_dir() / "README.md").string().c_str(), SIZE_MAX, nullptr, &engine, nullptr);
    }
    CHECK(n_right == kCallsOfWholeUse);
    CHECK(missing == INLAY_E_IO);
    CHECK(damaged == INLAY_E_FORMAT);
    CHECK(std::filesystem::file_size(path) == 0);
    std::filesystem::remove(path);
}

TEST_CASE("all calls together fit the stack that the contract names") {
    if (kSanitized) INLAY_SKIP("sanitizers make frames larger");
    constexpr size_t kPromised = 128 * 1024;
    constexpr size_t kOfTheSystem = 16 * 1024;  // thread-local storage and what the thread starts with
    pthread_attr_t attributes;
    REQUIRE(pthread_attr_init(&attributes) == 0);
    REQUIRE(pthread_attr_setstacksize(&attributes, kPromised + kOfTheSystem) == 0);
    int n_right = 0;
    const auto use = [](void* right) -> void* {
        *static_cast<int*>(right) = whole_use(tiny_model(), 2);
        return nullptr;
    };
    pthread_t thread;
    REQUIRE(pthread_create(&thread, &attributes, use, &n_right) == 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
    CHECK(n_right == kCallsOfWholeUse);
}

TEST_CASE("memory stays flat over a hundred lives of an engine") {
    if (kSlowed) INLAY_SKIP("sanitizers keep freed memory, emulators take their own");
    for (int i = 0; i < 20; ++i) REQUIRE(whole_use(tiny_model(), 3) == kCallsOfWholeUse);
    const uint64_t before = resident_bytes();
    for (int i = 0; i < 100; ++i) REQUIRE(whole_use(tiny_model(), 3) == kCallsOfWholeUse);
    const uint64_t after = resident_bytes();
    CHECK(after < before + (uint64_t{1} << 20));
}

TEST_CASE("an engine that is not asked takes no processor time") {
    const EnginePtr engine = open_tiny(0, 4);
    const CachePtr cache = create_cache(engine.get());
    const SessionPtr session = create_session(cache.get());
    append(session.get(), std::vector<int32_t>(100, 5));
    inlay_chunk chunk = empty_chunk();
    REQUIRE(inlay_session_next(session.get(), &chunk, nullptr) >= 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // workers look for more work a moment, then sleep
    const double before = processor_seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    CHECK(processor_seconds() - before < 0.02);
}
