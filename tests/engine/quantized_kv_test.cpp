// Quantised keys and values: what a position sees depends on positions alone, so whatever a session went through, its
// logits are those of a session that was given the same tokens at once.
#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "sanitized.h"
#include "test_model.h"

using namespace inlay;
using namespace inlay::test;

namespace {

constexpr int32_t kTokensBelow = 384;  // in every model's vocabulary

struct Types {
    KvType keys;
    KvType values;
};

constexpr Types kTypes[] = {{KvType::kInt8, KvType::kInt8}, {KvType::kInt4, KvType::kInt4},
                            {KvType::kInt8, KvType::kInt4}, {KvType::kF16, KvType::kInt8},
                            {KvType::kInt4, KvType::kF32},  {KvType::kBf16, KvType::kBf16}};

std::vector<std::filesystem::path> models() {
    return {data_dir() / "quant_models/q_Q4_1.gguf", data_dir() / "tiny/gemma3_text/gemma3_text.f32.gguf"};
}

std::vector<int32_t> random_tokens(size_t n, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<int32_t> tokens(n);
    for (int32_t& token : tokens) token = static_cast<int32_t>(random() % kTokensBelow);
    return tokens;
}

struct Fixture {
    std::shared_ptr<const Engine> engine;

    explicit Fixture(const std::filesystem::path& path) {
        EngineOptions options;
        options.n_threads = 2;
        options.max_step_tokens = 64;
        options.kernels = &kernels::fastest();
        engine = Engine::open(path.string(), options);
    }
    std::shared_ptr<const EngineCache> cache(Types types, bool no_reuse, uint64_t bytes = uint64_t{16} << 20) const {
        CacheOptions options;
        options.budget_bytes = bytes;
        options.no_reuse = no_reuse;
        return std::make_shared<const EngineCache>(engine, kv_layout_of(engine->spec(), types.keys, types.values),
                                                   options);
    }
    // Logits after the last of `tokens`, all computed.
    std::vector<float> last_logits(Session& session, std::span<const int32_t> tokens) const {
        session.append(tokens);
        Chunk chunk;
        NextOutcome outcome = NextOutcome::kMore;
        while (outcome == NextOutcome::kMore) outcome = session.next(chunk);
        const std::vector<float> logits(session.logits().begin(), session.logits().end());
        session.truncate(session.tokens().size() - chunk.tokens.size());
        return logits;
    }
    std::vector<float> cold_logits(Types types, std::span<const int32_t> tokens) const {
        Session session(cache(types, true), {});
        return last_logits(session, tokens);
    }
};

bool same_bits(std::span<const float> a, std::span<const float> b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

std::vector<int32_t> joined(std::span<const int32_t> a, std::span<const int32_t> b) {
    std::vector<int32_t> all(a.begin(), a.end());
    all.insert(all.end(), b.begin(), b.end());
    return all;
}

}  // namespace

TEST_CASE("a fork or a cut at any place of a quantised sequence goes on as a fresh one") {
    for (const auto& path : models()) {
        const Fixture fixture(path);
        for (const Types types : kTypes) {
            const std::vector<int32_t> tokens = random_tokens(85, 3);
            const std::vector<int32_t> rest = random_tokens(9, 4);
            const auto cache = fixture.cache(types, false);
            for (const size_t n : {5, 16, 17, 31, 40, 64, 79, 80, 81, 85}) {
                CAPTURE(path.filename().string(), static_cast<int>(types.keys), static_cast<int>(types.values), n);
                const auto first = std::span(tokens).first(n);
                const std::vector<float> expected = fixture.cold_logits(types, joined(first, rest));
                Session parent(cache, {});
                const std::vector<float> parents = fixture.last_logits(parent, tokens);
                const auto child = parent.fork(n);
                CHECK(same_bits(fixture.last_logits(*child, rest), expected));
                cache->cache().check_invariants();
                // The parent, whose open block the child shared, as before.
                CHECK(same_bits(fixture.last_logits(parent, rest), fixture.cold_logits(types, joined(tokens, rest))));
                parent.truncate(n);
                CHECK(same_bits(fixture.last_logits(parent, rest), expected));
                cache->cache().check_invariants();
            }
        }
    }
}

TEST_CASE("a prefix that is found quantised computes what a cold one does") {
    for (const auto& path : models()) {
        const Fixture fixture(path);
        for (const Types types : kTypes) {
            CAPTURE(path.filename().string(), static_cast<int>(types.keys), static_cast<int>(types.values));
            const std::vector<int32_t> tokens = random_tokens(150, 5);
            const auto cache = fixture.cache(types, false);
            Session first(cache, {});
            fixture.last_logits(first, std::span(tokens).first(130));
            for (const size_t n : {20, 96, 97, 128, 150}) {
                CAPTURE(n);
                Session second(cache, {});
                const auto part = std::span(tokens).first(n);
                CHECK(same_bits(fixture.last_logits(second, part), fixture.cold_logits(types, part)));
                CHECK(second.stats().n_reused_tokens == (std::min<size_t>(n, 129) - 1) / 16 * 16);
                cache->cache().check_invariants();
            }
        }
    }
}

TEST_CASE("logits of a last token are had again, in a quantised cache too") {
    for (const auto& path : models()) {
        const Fixture fixture(path);
        for (const size_t n : {15, 16, 17, 48}) {
            CAPTURE(path.filename().string(), n);
            const std::vector<int32_t> tokens = random_tokens(n, 6);
            Session session(fixture.cache(kTypes[1], false), {});
            REQUIRE(session.forward(tokens, tokens.size() - 1));
            const std::vector<float> logits(session.logits().begin(), session.logits().end());
            session.truncate(n);
            Chunk chunk;
            while (session.next(chunk) == NextOutcome::kMore) {
            }
            CHECK(same_bits(session.logits(), logits));
        }
    }
}

TEST_CASE("a quantised cache holds 16 tokens in about half and a third of f16's bytes") {
    const Fixture fixture(models()[0]);
    const auto bytes_of = [&](KvType type) {
        return static_cast<double>(kv_bytes_for(kv_layout_of(fixture.engine->spec(), type, type), 4096, 512));
    };
    CHECK(bytes_of(KvType::kBf16) == bytes_of(KvType::kF16));
    CHECK(bytes_of(KvType::kInt8) < 0.62 * bytes_of(KvType::kF16));  // small heads have more scales
    CHECK(bytes_of(KvType::kInt4) < 0.45 * bytes_of(KvType::kF16));
}

TEST_CASE("the bytes that a cache needs for so many tokens are enough for them") {
    for (const auto& path : models()) {
        const Fixture fixture(path);
        for (Types types : kTypes) {
            const KvLayout layout = kv_layout_of(fixture.engine->spec(), types.keys, types.values);
            for (size_t n = 1; n <= 40; n += n < 18 ? 1 : 7) {
                CAPTURE(path, static_cast<int>(types.keys), static_cast<int>(types.values), n);
                const auto cache = fixture.cache(types, false, kv_bytes_for(layout, n, 64));
                Session session(cache, SessionOptions{});
                CHECK(session.forward(random_tokens(n, 5), 0));
            }
        }
    }
}
