// Layers with a window, as a host sees them: what a growing text holds, what it gives back, and that this is found
// again.
#include <random>

#include "model_path.h"
#include "sanitized.h"

using namespace inlay::test;

namespace {

constexpr size_t kBlockTokens = 16;
constexpr size_t kStepTokens = 512;
constexpr size_t kTextTokens = (kSlowed ? 4 : 16) * kStepTokens;
constexpr size_t kPrefixTokens = kTextTokens / 2;

struct WindowModel {
    std::string path;
    size_t window;
    size_t n_full_groups;  // that keep all positions
    size_t n_window_groups;
    uint64_t block_bytes;  // f16
    int32_t n_vocabulary;

    // Of a text as long as a multiple of a block, behind its first window.
    size_t window_blocks() const { return n_window_groups * window / kBlockTokens; }
    size_t used_blocks(size_t n_tokens) const { return n_full_groups * n_tokens / kBlockTokens + window_blocks(); }
};

// Seven groups of one layer: one of full attention, six with a window.
WindowModel tiny_gemma() {
    return {(data_dir() / "tiny/gemma3_text/gemma3_text.f32.gguf").string(), 16, 1, 6, kBlockTokens * 2 * 32 * 2, 384};
}

// Six groups of three layers: one of full attention, five with a window.
WindowModel gemma_270m() {
    return {model_file("gemma-3-270m-q4_k_m.gguf").string(), 512, 1, 5, kBlockTokens * 3 * 2 * 256 * 2, 262144};
}

EnginePtr open(const WindowModel& model) {
    inlay_engine_options options{};
    options.struct_size = sizeof options;
    options.n_threads = 2;
    options.max_step_tokens = kStepTokens;
    inlay_engine* engine = nullptr;
    REQUIRE(inlay_engine_open(model.path.c_str(), SIZE_MAX, &options, &engine, nullptr) == INLAY_OK);
    return EnginePtr(engine);
}

std::vector<int32_t> random_text(int32_t n_vocabulary) {
    std::mt19937 random(11);
    std::uniform_int_distribution<int32_t> token(0, n_vocabulary - 1);
    std::vector<int32_t> text(kTextTokens);
    for (int32_t& t : text) t = token(random);
    return text;
}

void check_sum(const inlay_cache_stats& stats) {
    CHECK(stats.n_used_blocks + stats.n_cached_blocks + stats.n_free_blocks == stats.n_blocks);
}

std::vector<float> last_logits(inlay_session* session) {
    const float* logits = nullptr;
    size_t n_rows = 0;
    size_t width = 0;
    REQUIRE(inlay_session_logits(session, &logits, &n_rows, &width, nullptr) == INLAY_OK);
    return {logits + (n_rows - 1) * width, logits + n_rows * width};
}

// Computes text[first, end) in steps and returns the logits after it.
std::vector<float> compute(inlay_session* session, const std::vector<int32_t>& text, size_t first, size_t end) {
    while (first < end) {
        const size_t n_tokens = std::min(kStepTokens, end - first);
        REQUIRE(inlay_session_forward(session, text.data() + first, n_tokens, n_tokens - 1, nullptr) == INLAY_OK);
        first += n_tokens;
    }
    return last_logits(session);
}

// The logits after text[0, n_tokens) by a session that finds what it can.
std::vector<float> find(inlay_session* session, const std::vector<int32_t>& text, size_t n_tokens) {
    REQUIRE(inlay_session_append_tokens(session, text.data(), n_tokens, nullptr) == INLAY_OK);
    inlay_chunk chunk = empty_chunk();
    REQUIRE(inlay_session_next(session, &chunk, nullptr) == INLAY_OK);
    return last_logits(session);
}

// A cache with room for all blocks that a text ever takes.
CachePtr roomy_cache(const WindowModel& model, const inlay_engine* engine) {
    const size_t n_groups = model.n_full_groups + model.n_window_groups;
    return create_cache(engine, (kTextTokens / kBlockTokens + 8) * n_groups * model.block_bytes);
}

void check_growth_and_finding(const WindowModel& model) {
    const EnginePtr engine = open(model);
    const CachePtr cache = roomy_cache(model, engine.get());
    CHECK(stats_of(cache).block_bytes == model.block_bytes);
    const std::vector<int32_t> text = random_text(model.n_vocabulary);

    // Once the text is longer than the window, only the groups of full attention take more.
    const SessionPtr writer = create_session(cache.get(), kTextTokens);
    std::vector<float> after_prefix;
    std::vector<float> after_text;
    for (size_t first = 0; first < kTextTokens; first += kStepTokens) {
        const size_t end = first + kStepTokens;
        after_text = compute(writer.get(), text, first, end);
        if (end == kPrefixTokens) after_prefix = after_text;
        const inlay_cache_stats stats = stats_of(cache);
        CAPTURE(end);
        check_sum(stats);
        CHECK(stats.n_used_blocks == model.used_blocks(end));
        CHECK(stats.n_cached_blocks == model.n_window_groups * (end - model.window) / kBlockTokens);
    }

    // Half of the text: its windows lie where the writer's have passed.
    const SessionPtr reader = create_session(cache.get(), kTextTokens + kBlockTokens);
    set_limit(reader.get(), 2);
    CHECK(find(reader.get(), text, kPrefixTokens) == after_prefix);
    const inlay_cache_stats shared = stats_of(cache);
    CHECK(shared.n_prefix_hits == 1);
    CHECK(shared.n_reused_tokens == kPrefixTokens - kBlockTokens);
    CHECK(shared.n_shared_blocks == model.n_full_groups * kPrefixTokens / kBlockTokens);
    CHECK(shared.n_used_blocks == model.used_blocks(kTextTokens) + model.window_blocks());

    // And the whole, by a session that goes on where the reader stopped.
    REQUIRE(inlay_session_reset(reader.get(), nullptr) == INLAY_OK);
    CHECK(find(reader.get(), text, kTextTokens) == after_text);
    CHECK(stats_of(cache).n_reused_tokens == shared.n_reused_tokens + kTextTokens - kBlockTokens);
    CHECK(stats_of(cache).n_evicted_blocks == 0);
}

}  // namespace

TEST_CASE("windows: a text grows by the blocks of full attention, and what left a window is found again") {
    check_growth_and_finding(tiny_gemma());
}

TEST_CASE("windows: Gemma 3 270M holds six groups of three layers, and five of them a window of the text") {
    if (kSlowed) INLAY_SKIP("takes too long under a sanitizer or an emulator");
    if (gemma_270m().path.empty()) INLAY_SKIP("gemma-3-270m-q4_k_m.gguf was not fetched");
    check_growth_and_finding(gemma_270m());
}

TEST_CASE("windows: a cache of the size that is told for a text holds it, and nothing reads what was given back") {
    const WindowModel model = tiny_gemma();
    const EnginePtr engine = open(model);
    const std::vector<int32_t> text = random_text(model.n_vocabulary);
    const CachePtr roomy = roomy_cache(model, engine.get());
    const SessionPtr one = create_session(roomy.get(), kTextTokens);
    const std::vector<float> expected = compute(one.get(), text, 0, kTextTokens);

    uint64_t bytes = 0;
    REQUIRE(inlay_cache_bytes_for(engine.get(), nullptr, kTextTokens, &bytes, nullptr) == INLAY_OK);
    const uint64_t all_groups = (model.n_full_groups + model.n_window_groups) * kTextTokens / kBlockTokens;
    CHECK(bytes < all_groups * model.block_bytes / 2);
    const CachePtr tight = create_cache(engine.get(), bytes);
    const SessionPtr other = create_session(tight.get(), kTextTokens);
    CHECK(compute(other.get(), text, 0, kTextTokens) == expected);
    CHECK(stats_of(tight).n_evicted_blocks > 0);
}
