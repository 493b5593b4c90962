// Forks, pins and trimming as a host sees them.
#include "model_path.h"
#include "resident_memory.h"
#include "sanitized.h"

using namespace inlay::test;

namespace {

std::vector<int32_t> tokens_of(size_t n, int32_t seed) {
    std::vector<int32_t> tokens(n);
    for (size_t i = 0; i < n; ++i) tokens[i] = static_cast<int32_t>((static_cast<size_t>(seed) + i * i * 7) % 384);
    return tokens;
}

std::vector<int32_t> generate(inlay_session* session, int n) {
    std::vector<int32_t> tokens;
    for (int i = 0; i < n; ++i) {
        inlay_chunk chunk = empty_chunk();
        int32_t status = INLAY_MORE;
        while (status == INLAY_MORE) status = inlay_session_next(session, &chunk, nullptr);
        REQUIRE(status >= 0);
        tokens.insert(tokens.end(), chunk.tokens, chunk.tokens + chunk.n_tokens);
    }
    return tokens;
}

SessionPtr fork_of(const SessionPtr& session, uint64_t n_tokens = UINT64_MAX) {
    inlay_session* forked = nullptr;
    REQUIRE(inlay_session_fork(session.get(), n_tokens, &forked, nullptr) == INLAY_OK);
    return SessionPtr(forked);
}

}  // namespace

TEST_CASE("a fork goes on as its parent does, and both as a session of their own") {
    for (const char* model : {"tiny/llama/llama.f16.gguf", "tiny/gemma3_text/gemma3_text.f32.gguf"}) {
        CAPTURE(model);
        inlay_engine* raw = nullptr;
        REQUIRE(inlay_engine_open((data_dir() / model).string().c_str(), SIZE_MAX, nullptr, &raw, nullptr) == INLAY_OK);
        const EnginePtr engine(raw);
        const CachePtr cache = create_cache(engine.get(), 0, INLAY_CACHE_NO_REUSE);
        const SessionPtr parent = create_session(cache.get());
        sample_with(parent, 5);
        append(parent.get(), tokens_of(75, 1));
        const std::vector<int32_t> before = generate(parent.get(), 7);
        const SessionPtr child = fork_of(parent);
        CHECK(length_of(child.get()) == 82);
        const std::vector<int32_t> of_parent = generate(parent.get(), 30);
        CHECK(generate(child.get(), 30) == of_parent);
        CHECK(stats_of(child).n_computed_tokens == 30);  // the last token that was delivered, and those after it

        // In the middle, also below what a window has left; another seed parts them.
        const SessionPtr middle = fork_of(parent, 60);
        sample_with(middle, 9);
        append(middle.get(), tokens_of(5, 3));
        const SessionPtr fresh = create_session(cache.get());
        sample_with(fresh, 9);
        std::vector<int32_t> prompt = tokens_of(75, 1);
        prompt.resize(60);
        append(fresh.get(), prompt);
        append(fresh.get(), tokens_of(5, 3));
        CHECK(generate(middle.get(), 20) == generate(fresh.get(), 20));
    }
}

TEST_CASE("a fork before the first token has the parent's logits and computes nothing") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = create_cache(engine.get());
    const SessionPtr parent = create_session(cache.get());
    const std::vector<int32_t> prompt = tokens_of(33, 2);
    REQUIRE(inlay_session_forward(parent.get(), prompt.data(), prompt.size(), prompt.size() - 1, nullptr) == INLAY_OK);
    const SessionPtr child = fork_of(parent);
    const float* logits[2];
    REQUIRE(inlay_session_logits(parent.get(), &logits[0], nullptr, nullptr, nullptr) == INLAY_OK);
    REQUIRE(inlay_session_logits(child.get(), &logits[1], nullptr, nullptr, nullptr) == INLAY_OK);
    CHECK(std::memcmp(logits[0], logits[1], 384 * sizeof(float)) == 0);
    const float first = logits[1][0];
    generate(parent.get(), 5);  // the parent's next step leaves the child's logits alone
    CHECK(logits[1][0] == first);
    generate(child.get(), 1);
    CHECK(stats_of(child).n_computed_tokens == 0);
}

TEST_CASE("eight answers to one prompt take little more memory than one") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = create_cache(engine.get());
    const SessionPtr parent = create_session(cache.get());
    sample_with(parent, 1);
    append(parent.get(), tokens_of(320, 2));
    generate(parent.get(), 1);
    const uint64_t n_used = stats_of(cache).n_used_blocks;
    std::vector<SessionPtr> children;
    for (uint64_t seed = 0; seed < 8; ++seed) {
        children.push_back(fork_of(parent));
        sample_with(children.back(), 100 + seed);
    }
    CHECK(stats_of(cache).n_used_blocks == n_used);
    for (const SessionPtr& child : children) generate(child.get(), 10);
    CHECK(stats_of(cache).n_used_blocks <= n_used + 8 * n_used / 20);
    CHECK(stats_of(cache).n_shared_blocks >= 320 / 16);
}

TEST_CASE("a fork refuses what it can not do") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = create_cache(engine.get());
    const SessionPtr session = create_session(cache.get());
    append(session.get(), {1, 2, 3});
    inlay_session* forked = nullptr;
    const auto refused = [&](inlay_session* which, uint64_t n, inlay_session** out, const char* word) {
        const Outcome outcome =
            outcome_of([&](inlay_error** error) { return inlay_session_fork(which, n, out, error); });
        CHECK(outcome.status == INLAY_E_INVALID_ARGUMENT);
        CHECK_THAT(outcome.sentence, Catch::Contains(word));
    };
    refused(session.get(), 4, &forked, "n_tokens is 4");
    refused(nullptr, 1, &forked, "session");
    refused(session.get(), 1, nullptr, "forked");
    CHECK(forked == nullptr);
    CHECK(length_of(fork_of(session, 0).get()) == 0);
}

TEST_CASE("a pinned prefix stays while others fill the cache") {
    const EnginePtr engine = open_tiny();
    uint64_t bytes = 0;
    REQUIRE(inlay_cache_bytes_for(engine.get(), nullptr, 160, &bytes, nullptr) == INLAY_OK);
    const CachePtr cache = create_cache(engine.get(), bytes);
    const std::vector<int32_t> prefix = tokens_of(64, 1);
    const auto compute = [&](const std::vector<int32_t>& prompt) {
        const SessionPtr session = create_session(cache.get());
        append(session.get(), prompt);
        generate(session.get(), 1);
        return stats_of(session).n_reused_tokens;
    };
    std::vector<int32_t> longer = prefix;
    longer.push_back(9);
    CHECK(compute(longer) == 0);
    uint64_t pin = 0, n_held = 0;
    REQUIRE(inlay_cache_pin(cache.get(), prefix.data(), prefix.size(), 0, &pin, &n_held, nullptr) == INLAY_OK);
    CHECK(pin != 0);
    CHECK(n_held == 64);
    for (int32_t i = 0; i < 10; ++i) compute(tokens_of(90, 100 + i));
    REQUIRE(inlay_cache_clear(cache.get(), nullptr) == INLAY_OK);
    CHECK(compute(longer) == 64);

    REQUIRE(inlay_cache_unpin(cache.get(), pin, nullptr) == INLAY_OK);
    CHECK(inlay_cache_unpin(cache.get(), pin, nullptr) == INLAY_E_INVALID_ARGUMENT);
    REQUIRE(inlay_cache_clear(cache.get(), nullptr) == INLAY_OK);
    CHECK(compute(longer) == 0);

    REQUIRE(inlay_cache_pin(cache.get(), prefix.data(), prefix.size(), 77, &pin, &n_held, nullptr) == INLAY_OK);
    CHECK(n_held == 0);  // of another salt
    CHECK(inlay_cache_pin(cache.get(), prefix.data(), 0, 0, &pin, nullptr, nullptr) == INLAY_E_INVALID_ARGUMENT);
}

TEST_CASE("sessions of different salts share nothing") {
    const EnginePtr engine = open_tiny();
    const CachePtr cache = create_cache(engine.get());
    const auto reused_with = [&](uint64_t salt) {
        inlay_session_options options{};
        options.struct_size = sizeof options;
        options.cache_salt = salt;
        inlay_session* raw = nullptr;
        REQUIRE(inlay_session_create(cache.get(), &options, &raw, nullptr) == INLAY_OK);
        const SessionPtr session(raw);
        append(session.get(), tokens_of(65, 1));
        generate(session.get(), 1);
        return stats_of(session).n_reused_tokens;
    };
    CHECK(reused_with(1) == 0);
    CHECK(reused_with(2) == 0);
    CHECK(reused_with(1) == 64);
}

TEST_CASE("trimming a cache gives its memory back to the system") {
    if (kSlowed) INLAY_SKIP("sanitizers and emulators count memory of their own");
    const EnginePtr engine = open_tiny();
    const CachePtr cache = create_cache(engine.get(), uint64_t{64} << 20, INLAY_CACHE_COMMIT_NOW);
    const uint64_t before = resident_bytes();
    REQUIRE(inlay_cache_trim(cache.get(), nullptr) == INLAY_OK);
    CHECK(resident_bytes() + (uint64_t{60} << 20) < before);
    const SessionPtr session = create_session(cache.get());
    append(session.get(), tokens_of(100, 1));
    const std::vector<int32_t> tokens = generate(session.get(), 3);
    const CachePtr other = create_cache(engine.get());
    const SessionPtr again = create_session(other.get());
    append(again.get(), tokens_of(100, 1));
    CHECK(generate(again.get(), 3) == tokens);
}
