// Pools of compute threads through the contract: shared by engines, lent by the host, ended in any order.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "model_path.h"
#include "tests/sanitized.h"

using namespace inlay::test;

namespace {

struct WorkersRelease {
    void operator()(inlay_workers* handle) const { inlay_workers_release(handle); }
};
using WorkersPtr = std::unique_ptr<inlay_workers, WorkersRelease>;

WorkersPtr create_workers(uint32_t n_threads, uint32_t flags = 0) {
    inlay_workers_options options{};
    options.struct_size = sizeof options;
    options.n_threads = n_threads;
    options.flags = flags;
    inlay_workers* workers = nullptr;
    REQUIRE(inlay_workers_create(&options, &workers, nullptr) == INLAY_OK);
    return WorkersPtr(workers);
}

inlay_engine_options options_with(const inlay_workers* workers) {
    inlay_engine_options options = engine_options(0);
    options.workers = workers;
    return options;
}

const std::string kOtherModel = (data_dir() / "quant_models/q_Q4_K_M.gguf").string();

// Whether a new session of the engine computes these logits. Asserts nothing, so that any thread may call it.
bool computes(const inlay_engine* engine, const std::vector<float>& expected) {
    inlay_cache_options options{};
    options.struct_size = sizeof options;
    options.bytes = 4 << 20;
    inlay_cache* cache = nullptr;
    inlay_session* session = nullptr;
    inlay_cache_create(engine, &options, &cache, nullptr);
    const CachePtr cache_owner(cache);
    inlay_session_create(cache, nullptr, &session, nullptr);
    const SessionPtr session_owner(session);
    return forward_logits(session) == expected;
}

// Whether a thread of this process sleeps, as one without work does inside inlay_workers_run.
bool is_asleep(pid_t thread) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string text;
    std::getline(file, text);
    return text.find(") S ") != std::string::npos;
}

// Threads of the host inside a lent pool, each with a reference of its own.
class LentThreads {
public:
    LentThreads(const inlay_workers* workers, unsigned n) {
        for (unsigned i = 0; i < n; ++i) {
            inlay_workers_retain(workers);
            threads_.emplace_back([this, workers] {
                ++n_begun_;
                statuses_ += inlay_workers_run(workers, nullptr);
                inlay_workers_release(workers);
            });
        }
        while (n_begun_ < n) std::this_thread::yield();
    }
    // After the pool was stopped.
    void join() {
        for (std::thread& thread : threads_) thread.join();
        threads_.clear();
        CHECK(statuses_ == 0);
    }

private:
    std::atomic<unsigned> n_begun_{0};
    std::atomic<int> statuses_{0};
    std::vector<std::thread> threads_;
};

}  // namespace

TEST_CASE("engines on one pool step at the same time and compute what they compute alone") {
    const std::vector<float> llama = logits_of(open_tiny().get());
    const std::vector<float> other = logits_of(open_model(kOtherModel).get());
    for (const bool lent : {false, true}) {
        const WorkersPtr workers = create_workers(3, lent ? INLAY_WORKERS_LENT : 0);
        const EnginePtr first = open_model(tiny_model(), options_with(workers.get()));
        const EnginePtr second = open_model(kOtherModel, options_with(workers.get()));
        inlay_engine_info info{};
        info.struct_size = sizeof info;
        REQUIRE(inlay_engine_get_info(first.get(), &info, nullptr) == INLAY_OK);
        CHECK(info.n_threads == 3);

        LentThreads threads(workers.get(), lent ? 2 : 0);
        std::atomic<int> n_wrong{0};
        const auto compute = [&](const inlay_engine* engine, const std::vector<float>& expected, int n_times) {
            for (int i = 0; i < n_times; ++i) n_wrong += !computes(engine, expected);
        };
        const int n_times = kSlowed ? 5 : 40;
        // Two sessions of one engine, one of another, and a third engine that is opened meanwhile.
        std::vector<std::thread> callers;
        for (int i = 0; i < 2; ++i) callers.emplace_back([&] { compute(first.get(), llama, n_times); });
        callers.emplace_back([&] { compute(second.get(), other, n_times); });
        callers.emplace_back([&] {
            const inlay_engine_options options = options_with(workers.get());
            for (int i = 0; i < 5; ++i) {
                inlay_engine* engine = nullptr;
                inlay_engine_open(kOtherModel.data(), kOtherModel.size(), &options, &engine, nullptr);
                const EnginePtr owner(engine);
                compute(engine, other, 1);
            }
        });
        for (std::thread& caller : callers) caller.join();
        CHECK(n_wrong == 0);
        inlay_workers_stop(workers.get());
        threads.join();
        CHECK(logits_of(first.get()) == llama);  // also without the lent threads
    }
}

TEST_CASE("engines hold their workers") {
    const std::vector<float> expected = logits_of(open_tiny().get());
    WorkersPtr workers = create_workers(2);
    const EnginePtr engine = open_model(tiny_model(), options_with(workers.get()));
    workers.reset();
    CHECK(logits_of(engine.get()) == expected);
}

TEST_CASE("lent threads return when nobody is left who could stop them") {
    const std::vector<float> expected = logits_of(open_tiny().get());
    WorkersPtr workers = create_workers(2, INLAY_WORKERS_LENT);
    std::atomic<pid_t> id{0};
    int32_t status = -1;
    std::thread lent([&, raw = workers.get()] {
        id = gettid();
        status = inlay_workers_run(raw, nullptr);
    });
    while (id == 0 || !is_asleep(id)) std::this_thread::yield();  // inside, where it needs no reference of its own
    EnginePtr engine = open_model(tiny_model(), options_with(workers.get()));
    workers.reset();
    CHECK(logits_of(engine.get()) == expected);
    engine.reset();
    lent.join();
    CHECK(status == INLAY_OK);
}

TEST_CASE("inherited workers serve nothing in a forked child") {
    const WorkersPtr lent = create_workers(2, INLAY_WORKERS_LENT);
    const WorkersPtr own = create_workers(2);
    const inlay_engine_options options = options_with(own.get());
    const pid_t child = fork();
    if (child == 0) {
        inlay_engine* engine = nullptr;
        const bool refused =
            inlay_workers_run(lent.get(), nullptr) == INLAY_E_UNSUPPORTED &&
            inlay_engine_open(tiny_model().c_str(), SIZE_MAX, &options, &engine, nullptr) == INLAY_E_UNSUPPORTED;
        inlay_workers_stop(lent.get());
        inlay_workers_release(lent.get());
        _exit(refused ? 0 : 1);
    }
    REQUIRE(child > 0);
    int result = -1;
    REQUIRE(waitpid(child, &result, 0) == child);
    CHECK(result == 0);
    std::thread thread([raw = lent.get()] { inlay_workers_run(raw, nullptr); });
    inlay_workers_stop(lent.get());
    thread.join();
}

TEST_CASE("workers calls name what is wrong") {
    inlay_workers* workers = nullptr;
    inlay_workers_options options{};
    options.struct_size = sizeof options;
    const auto create = [&] {
        return outcome_of([&](inlay_error** error) { return inlay_workers_create(&options, &workers, error); });
    };
    options.n_threads = 257;
    CHECK_THAT(create().sentence, Catch::Contains("options->n_threads"));
    options.n_threads = 2;
    options.flags = 2;
    CHECK(create().status == INLAY_E_UNSUPPORTED);
    options.flags = 0;
    options.reserved = 1;
    CHECK(create().status == INLAY_E_UNSUPPORTED);
    CHECK(workers == nullptr);
    CHECK(inlay_workers_create(nullptr, nullptr, nullptr) == INLAY_E_INVALID_ARGUMENT);

    const WorkersPtr own = create_workers(2);
    const Outcome not_lent = outcome_of([&](inlay_error** error) { return inlay_workers_run(own.get(), error); });
    CHECK(not_lent.status == INLAY_E_STATE);
    CHECK_THAT(not_lent.sentence, Catch::Contains("INLAY_WORKERS_LENT"));
    inlay_workers_stop(own.get());  // nothing
    CHECK(outcome_of([](inlay_error** error) { return inlay_workers_run(nullptr, error); }).sentence ==
          "workers is NULL");

    const WorkersPtr alone = create_workers(1, INLAY_WORKERS_LENT);
    const Outcome full = outcome_of([&](inlay_error** error) { return inlay_workers_run(alone.get(), error); });
    CHECK(full.status == INLAY_E_STATE);
    CHECK_THAT(full.sentence, Catch::Contains("room for n_threads - 1 = 0"));
    inlay_workers_stop(alone.get());
    CHECK(inlay_workers_run(alone.get(), nullptr) == INLAY_OK);

    inlay_engine_options with = options_with(own.get());
    with.n_threads = 2;
    const std::string path = tiny_model();
    inlay_engine* engine = nullptr;
    const Outcome both = outcome_of(
        [&](inlay_error** error) { return inlay_engine_open(path.data(), path.size(), &with, &engine, error); });
    CHECK(both.status == INLAY_E_INVALID_ARGUMENT);
    CHECK_THAT(both.sentence, Catch::Contains("options->n_threads") && Catch::Contains("options->workers"));
    inlay_workers_release(nullptr);
    inlay_workers_retain(nullptr);
    inlay_workers_stop(nullptr);
}

TEST_CASE("a system that gives no thread is out of memory with a sentence that says so") {
    if (kSlowed) return;  // sanitizers choose the size of stacks themselves, an emulator maps them
    pthread_attr_t before;
    REQUIRE(pthread_getattr_default_np(&before) == 0);
    pthread_attr_t huge = before;
    REQUIRE(pthread_attr_setstacksize(&huge, size_t{1} << 46) == 0);
    REQUIRE(pthread_setattr_default_np(&huge) == 0);
    const std::string path = tiny_model();
    inlay_engine* engine = nullptr;
    inlay_engine_options options = engine_options(3);
    const Outcome three = outcome_of(
        [&](inlay_error** error) { return inlay_engine_open(path.data(), path.size(), &options, &engine, error); });
    REQUIRE(pthread_setattr_default_np(&before) == 0);
    CHECK(engine == nullptr);
    CHECK(three.status == INLAY_E_OUT_OF_MEMORY);
    CHECK_THAT(three.sentence, Catch::StartsWith("compute thread 1 of 2 could not be started: "));
}
