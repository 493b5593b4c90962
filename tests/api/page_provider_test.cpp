// An engine on the host's memory: everything large comes from there, goes back there, and what it refuses is a status.
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>

#include "model_path.h"

using namespace inlay::test;

namespace {

// Keeps account of what is reserved and committed. Memory that is not committed holds NaNs.
class Pages {
public:
    int n_releases = 0;
    std::atomic<int> n_reserves{0};
    std::atomic<int> n_commits{0};
    int fails_at_reserve = -1;
    int fails_at_commit = -1;
    size_t misaligned_by = 0;
    std::set<uint32_t> reserve_flags, commit_flags;
    bool wrong = false;  // a call that the contract does not allow

    Pages() = default;
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;
    ~Pages() {
        CHECK(n_reserved() == 0);
        CHECK_FALSE(wrong);
    }

    inlay_page_provider provider() {
        inlay_page_provider provider{};
        provider.struct_size = sizeof provider;
        provider.user = this;
        provider.reserve = [](void* user, size_t bytes, uint32_t flags) -> void* {
            return self(user).reserve(bytes, flags);
        };
        provider.commit = [](void* user, void* address, size_t bytes, uint32_t flags) -> int32_t {
            return self(user).commit(static_cast<char*>(address), bytes, flags) ? 0 : 1;
        };
        provider.decommit = [](void* user, void* address, size_t bytes) {
            std::memset(address, 0xff, bytes);
            (void)user;
        };
        provider.release = [](void* user, void* address, size_t bytes) {
            self(user).release(static_cast<char*>(address), bytes);
        };
        provider.on_release = [](void* user) {
            CHECK(self(user).n_reserved() == 0);
            ++self(user).n_releases;
        };
        return provider;
    }

    size_t n_reserved() {
        const std::lock_guard lock(mutex_);
        return reserved_.size();
    }
    size_t reserved_bytes() {
        const std::lock_guard lock(mutex_);
        size_t bytes = 0;
        for (const auto& [address, range] : reserved_) bytes += range.bytes;
        return bytes;
    }

private:
    struct Range {
        size_t bytes;
        std::set<size_t> committed;  // pages
    };
    static constexpr size_t kPage = 4096;

    static Pages& self(void* user) { return *static_cast<Pages*>(user); }

    void* reserve(size_t bytes, uint32_t flags) {
        const std::lock_guard lock(mutex_);
        reserve_flags.insert(flags);
        if (n_reserves++ == fails_at_reserve) return nullptr;
        wrong |= bytes == 0 || bytes % kPage != 0;
        auto* address = static_cast<char*>(std::aligned_alloc(kPage, bytes + kPage));
        std::memset(address, 0xff, bytes + kPage);
        address += misaligned_by;
        reserved_[address] = {bytes, {}};
        return address;
    }
    bool commit(char* address, size_t bytes, uint32_t flags) {
        const std::lock_guard lock(mutex_);
        commit_flags.insert(flags);
        if (n_commits++ == fails_at_commit) return false;
        auto range = reserved_.upper_bound(address);
        wrong |= range == reserved_.begin();
        if (wrong) return false;
        --range;
        const auto offset = static_cast<size_t>(address - range->first);
        wrong |= offset % kPage != 0 || bytes % kPage != 0 || bytes == 0 || offset + bytes > range->second.bytes;
        if (wrong) return false;
        for (size_t page = offset / kPage; page < (offset + bytes) / kPage; ++page)
            if (range->second.committed.insert(page).second) std::memset(range->first + page * kPage, 0, kPage);
        return true;
    }
    void release(char* address, size_t bytes) {
        const std::lock_guard lock(mutex_);
        const auto range = reserved_.find(address);
        wrong |= range == reserved_.end() || range->second.bytes != bytes;
        if (range == reserved_.end()) return;
        reserved_.erase(range);
        std::free(address - misaligned_by);
    }

    std::mutex mutex_;
    std::map<char*, Range> reserved_;
};

inlay_engine_options options_with(const inlay_page_provider& provider) {
    inlay_engine_options options = engine_options();
    options.pages = &provider;
    return options;
}

Outcome open_with(const inlay_page_provider& provider) {
    const inlay_engine_options options = options_with(provider);
    const std::string path = tiny_model();
    inlay_engine* engine = nullptr;
    const Outcome outcome = outcome_of(
        [&](inlay_error** error) { return inlay_engine_open(path.data(), path.size(), &options, &engine, error); });
    inlay_engine_release(engine);
    return outcome;
}

}  // namespace

TEST_CASE("weights, caches and scratch lie in the host's pages and go back before on_release") {
    const std::vector<float> expected = logits_of(open_tiny().get());
    Pages pages;
    {
        EnginePtr engine = open_model(tiny_model(), options_with(pages.provider()));
        inlay_engine_info info{};
        info.struct_size = sizeof info;
        REQUIRE(inlay_engine_get_info(engine.get(), &info, nullptr) == INLAY_OK);
        CHECK(pages.reserved_bytes() >= info.weight_bytes);
        const size_t without_cache = pages.reserved_bytes();
        CachePtr cache = create_cache(engine.get(), 4 << 20);
        CHECK(pages.reserved_bytes() > without_cache + (3 << 20));
        SessionPtr session = create_session(cache.get());
        CHECK(logits_of(session.get()) == expected);
        CHECK(pages.reserve_flags == std::set<uint32_t>{0, INLAY_PAGES_LARGE});
        CHECK(pages.commit_flags == std::set<uint32_t>{0});

        engine.reset();
        cache.reset();
        CHECK(pages.n_releases == 0);
        CHECK(pages.n_reserved() >= 3);
        session.reset();
        CHECK(pages.n_releases == 1);
        CHECK(pages.n_reserved() == 0);
    }
    CHECK(pages.n_releases == 1);
}

TEST_CASE("memory that is wanted now is asked for so") {
    Pages pages;
    const EnginePtr engine = open_model(tiny_model(), options_with(pages.provider()));
    const CachePtr cache = create_cache(engine.get(), 1 << 20, INLAY_CACHE_COMMIT_NOW);
    CHECK(pages.commit_flags == std::set<uint32_t>{0, INLAY_PAGES_NOW});
}

TEST_CASE("a provider without commit and decommit gives memory at once") {
    const std::vector<float> expected = logits_of(open_tiny().get());
    static int n_released = 0;
    n_released = 0;
    inlay_page_provider provider{};
    provider.struct_size = sizeof provider;
    provider.reserve = [](void*, size_t bytes, uint32_t) -> void* {
        void* address = std::aligned_alloc(4096, bytes);
        std::memset(address, 0, bytes);
        return address;
    };
    provider.release = [](void*, void* address, size_t) { std::free(address); };
    CHECK(logits_of(open_model(tiny_model(), options_with(provider)).get()) == expected);
    provider.on_release = [](void* user) { n_released += user == nullptr; };
    open_model(tiny_model(), options_with(provider));
    CHECK(n_released == 1);
}

TEST_CASE("each refusal of the host's is out of memory, and takes nothing") {
    Pages pages;
    for (pages.fails_at_reserve = 0;; ++pages.fails_at_reserve) {
        pages.n_reserves = 0;
        const Outcome outcome = open_with(pages.provider());
        if (outcome.status == INLAY_OK) break;
        CHECK(outcome.status == INLAY_E_OUT_OF_MEMORY);
        CHECK(pages.n_reserved() == 0);
        CHECK(pages.n_releases == 0);
    }
    CHECK(pages.fails_at_reserve == 2);  // weights, scratch
    CHECK(pages.n_releases == 1);
    pages.fails_at_reserve = -1;
    pages.n_commits = 0;
    pages.fails_at_commit = 0;
    CHECK(open_with(pages.provider()).status == INLAY_E_OUT_OF_MEMORY);

    // Scratch is committed by the first step, a cache by its creation.
    pages.fails_at_commit = -1;
    const EnginePtr engine = open_model(tiny_model(), options_with(pages.provider()));
    inlay_cache* none = nullptr;
    pages.n_reserves = 0;
    pages.fails_at_reserve = 0;
    CHECK(inlay_cache_create(engine.get(), nullptr, &none, nullptr) == INLAY_E_OUT_OF_MEMORY);
    CHECK(none == nullptr);
    pages.n_commits = 0;
    pages.fails_at_commit = 0;
    CHECK(inlay_cache_create(engine.get(), nullptr, &none, nullptr) == INLAY_E_OUT_OF_MEMORY);
    const CachePtr cache = create_cache(engine.get(), 4 << 20);
    const SessionPtr session = create_session(cache.get());
    pages.n_commits = 0;
    append(session.get(), {1, 2, 3});
    inlay_chunk chunk = empty_chunk();
    CHECK(inlay_session_next(session.get(), &chunk, nullptr) == INLAY_E_OUT_OF_MEMORY);
    CHECK(inlay_session_next(session.get(), &chunk, nullptr) == INLAY_OK);
}

TEST_CASE("a misaligned address is refused and given back") {
    for (const size_t by : {size_t{1}, size_t{64}, size_t{2048}}) {
        Pages pages;
        pages.misaligned_by = by;
        const Outcome outcome = open_with(pages.provider());
        CHECK(outcome.status == INLAY_E_INVALID_ARGUMENT);
        CHECK_THAT(outcome.sentence, Catch::Contains("page provider: reserve") && Catch::Contains("4096"));
        CHECK(pages.n_reserved() == 0);
        CHECK(pages.n_releases == 0);
    }
}

TEST_CASE("a provider names what is missing") {
    Pages pages;
    const auto refuses = [](const inlay_page_provider& provider, int32_t status, const std::string& word) {
        const Outcome outcome = open_with(provider);
        CHECK(outcome.status == status);
        CHECK_THAT(outcome.sentence, Catch::Contains(word));
    };
    inlay_page_provider provider = pages.provider();
    provider.struct_size = 0;
    refuses(provider, INLAY_E_INVALID_ARGUMENT, "options->pages->struct_size");
    provider = pages.provider();
    provider.reserved = 1;
    refuses(provider, INLAY_E_UNSUPPORTED, "options->pages->reserved");
    provider = pages.provider();
    provider.reserve = nullptr;
    refuses(provider, INLAY_E_INVALID_ARGUMENT, "options->pages->reserve");
    provider = pages.provider();
    provider.release = nullptr;
    refuses(provider, INLAY_E_INVALID_ARGUMENT, "options->pages->release");
    CHECK(pages.n_releases == 0);
}
