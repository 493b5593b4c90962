// Saved sessions that are damaged, lie, or belong to another model: an error with a sentence, and nothing has changed.
#include <functional>
#include <limits>

#include "saved_session.h"

using namespace inlay::test;

namespace {

struct Fixture {
    EnginePtr engine;
    CachePtr cache;
    SessionPtr original;
    std::string bytes;

    explicit Fixture(const std::string& model = "tiny/llama/llama.f16.gguf", int32_t kv_type = INLAY_KV_F16)
        : engine(open_model((data_dir() / model).string())) {
        inlay_cache_options options{};
        options.struct_size = sizeof options;
        options.key_type = options.value_type = kv_type;
        inlay_cache* made = nullptr;
        REQUIRE(inlay_cache_create(engine.get(), &options, &made, nullptr) == INLAY_OK);
        cache.reset(made);
        original = create_session(cache.get());
        std::vector<int32_t> prompt(37);
        for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<int32_t>(i * 11 % 250);
        append(original.get(), prompt);
        inlay_chunk chunk = empty_chunk();
        REQUIRE(inlay_session_next(original.get(), &chunk, nullptr) == INLAY_OK);
        bytes = saved(original.get());
    }

    uint64_t n_used() const {
        inlay_cache_stats stats{};
        stats.struct_size = sizeof stats;
        REQUIRE(inlay_cache_get_stats(cache.get(), &stats, nullptr) == INLAY_OK);
        return stats.n_used_blocks;
    }

    // The status of a load, which must leave everything as it was unless it succeeds.
    int32_t status_of(const std::string& changed, std::string* sentence = nullptr) const {
        const uint64_t before = n_used();
        const SessionPtr session = create_session(cache.get());
        const Outcome outcome = load(session.get(), changed, INLAY_LOAD_TRUSTED);
        if (sentence) *sentence = outcome.sentence;
        if (outcome.status == INLAY_OK) return INLAY_OK;
        CHECK(length_of(session.get()) == 0);
        CHECK(n_used() == before);
        CHECK_THAT(outcome.sentence, Catch::Contains("s"));
        return outcome.status;
    }

    // The same after `change`, with all checksums right.
    int32_t status_after(const std::function<void(std::string&)>& change) const {
        std::string changed = bytes;
        change(changed);
        reseal(changed);
        return status_of(changed);
    }
    template <typename T>
    int32_t status_with(size_t at, T value) const {
        return status_after([&](std::string& changed) { set_value(changed, at, value); });
    }
};

}  // namespace

TEST_CASE("a saved session that is cut anywhere is refused") {
    const Fixture fixture;
    REQUIRE(fixture.status_of(fixture.bytes) == INLAY_OK);
    for (size_t n = 0; n < fixture.bytes.size(); n += n < 600 ? 1 : 509) {
        CAPTURE(n);
        REQUIRE(fixture.status_of(fixture.bytes.substr(0, n)) == INLAY_E_FORMAT);
    }
    CHECK(fixture.status_of(fixture.bytes.substr(0, fixture.bytes.size() - 1)) == INLAY_E_FORMAT);
}

TEST_CASE("a byte that was changed anywhere is noticed") {
    const Fixture fixture;
    for (size_t at = 0; at < fixture.bytes.size(); at += at < 1500 ? 1 : 251) {
        CAPTURE(at);
        std::string changed = fixture.bytes;
        changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
        REQUIRE(fixture.status_of(changed) == INLAY_E_FORMAT);
    }
}

TEST_CASE("each field of the head decides something") {
    const Fixture fixture;
    CHECK(fixture.status_with<char>(0, 'X') == INLAY_E_FORMAT);
    CHECK(fixture.status_with<uint32_t>(8, 2) == INLAY_E_UNSUPPORTED);   // version
    CHECK(fixture.status_with<uint32_t>(12, 5) == INLAY_E_UNSUPPORTED);  // sections
    for (const size_t at : {16, 23, 24, 31}) {                           // fingerprint
        const auto other = static_cast<char>(fixture.bytes[at] + 1);
        CHECK(fixture.status_with<char>(at, other) == INLAY_E_MISMATCH);
    }
    CHECK(fixture.status_with<uint32_t>(32, INLAY_KV_F32) == INLAY_E_MISMATCH);
    CHECK(fixture.status_with<uint32_t>(36, 77) == INLAY_E_MISMATCH);
    CHECK(fixture.status_with<uint32_t>(40, 77) == INLAY_OK);  // numerics: loaded, but private
    CHECK(fixture.status_with<uint32_t>(44, 77) == INLAY_OK);
    for (size_t at = 48; at < 120; at += 8) CHECK(fixture.status_with<uint64_t>(at, 1) == INLAY_E_UNSUPPORTED);
}

TEST_CASE("a session of another model or other types is refused as such") {
    const Fixture llama, llama_f32("tiny/llama/llama.f16.gguf", INLAY_KV_F32),
        gemma("tiny/gemma3_text/gemma3_text.f32.gguf");
    std::string sentence;
    CHECK(llama.status_of(gemma.bytes, &sentence) == INLAY_E_MISMATCH);
    CHECK_THAT(sentence, Catch::Contains("another model"));
    CHECK(llama.status_of(llama_f32.bytes, &sentence) == INLAY_E_MISMATCH);
    CHECK_THAT(sentence, Catch::Contains("types"));
    CHECK(gemma.status_of(llama.bytes) == INLAY_E_MISMATCH);
    CHECK(std::string(inlay_status_name(INLAY_E_MISMATCH)) == "INLAY_E_MISMATCH");
}

TEST_CASE("sections that lie are refused, whatever their checksums say") {
    const Fixture fixture;
    const std::string& bytes = fixture.bytes;
    for (const uint32_t kind : {kSavedLayout, kSavedState, kSavedTokens, kSavedBlocks}) {
        const size_t begin = section_begin(bytes, kind);
        CAPTURE(kind);
        CHECK(fixture.status_with<uint32_t>(begin - 16, 9) == INLAY_E_FORMAT);
        CHECK(fixture.status_with<uint32_t>(begin - 12, 1) == INLAY_E_FORMAT);
        for (const uint64_t n : {uint64_t{0}, uint64_t{1} << 40, UINT64_MAX})
            CHECK(fixture.status_with<uint64_t>(begin - 8, n) == INLAY_E_FORMAT);
    }
    const size_t layout = section_begin(bytes, kSavedLayout);
    for (size_t at = layout; at + 24 < section_begin(bytes, kSavedState); at += 8)
        CHECK(fixture.status_with<uint64_t>(at, 12345) == INLAY_E_MISMATCH);

    const size_t state = section_begin(bytes, kSavedState);
    CHECK(fixture.status_with<uint64_t>(state, 36) == INLAY_E_FORMAT);  // fewer tokens than computed
    CHECK(fixture.status_with<uint64_t>(state, 39) == INLAY_E_FORMAT);  // more than there are
    CHECK(fixture.status_with<uint64_t>(state, UINT64_MAX) != INLAY_OK);
    CHECK(fixture.status_with<uint64_t>(state + 8, 10) == INLAY_E_FORMAT);  // fewer blocks than there are
    CHECK(fixture.status_with<uint64_t>(state + 8, UINT64_MAX) == INLAY_E_FORMAT);
    CHECK(fixture.status_with<uint64_t>(state + 16, 5) == INLAY_E_FORMAT);
    CHECK(fixture.status_with<uint64_t>(state + 24, 99) == INLAY_E_FORMAT);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const size_t at : {48, 52, 56})
        for (const float value : {-1.0f, 101.0f, nan}) CHECK(fixture.status_with(state + at, value) == INLAY_E_FORMAT);
    CHECK(fixture.status_with<uint32_t>(state + 64, 2) == INLAY_E_FORMAT);  // flags
    CHECK(fixture.status_with<uint32_t>(state + 68, 4) == INLAY_E_FORMAT);  // ending
    CHECK(fixture.status_with<uint32_t>(state + 72, 1) == INLAY_E_FORMAT);  // a character that has not begun
    CHECK(fixture.status_with<uint32_t>(state + 72, 70) == INLAY_E_FORMAT);

    CHECK(fixture.status_with<uint32_t>(state + 76, 0x80) == INLAY_E_FORMAT);  // behind the bytes that wait

    const size_t tokens = section_begin(bytes, kSavedTokens);
    CHECK(fixture.status_with<int32_t>(tokens + 8, -1) == INLAY_E_FORMAT);
    CHECK(fixture.status_with<int32_t>(tokens + 8, 1 << 30) == INLAY_E_FORMAT);
    const size_t blocks = section_begin(bytes, kSavedBlocks);
    for (const uint64_t first : {uint64_t{1}, uint64_t{3}, UINT64_MAX})
        CHECK(fixture.status_with<uint64_t>(blocks, first) == INLAY_E_FORMAT);
    CHECK(fixture.status_with<uint64_t>(blocks + 8, 2) == INLAY_E_FORMAT);
}

TEST_CASE("states that no session has are refused") {
    const Fixture fixture;
    const size_t state = section_begin(fixture.bytes, kSavedState);
    REQUIRE(value_at<uint64_t>(fixture.bytes, state) == 38);
    REQUIRE(value_at<uint64_t>(fixture.bytes, state + 16) == 37);
    REQUIRE(value_at<uint64_t>(fixture.bytes, state + 24) == 1);
    struct Change {
        uint64_t highest_computed, n_new, max_new;
        int32_t finish;
        int32_t status;
    };
    const Change changes[] = {
        {37, 1, 0, INLAY_FINISH_NONE, INLAY_OK},
        {37, 1, 2, INLAY_FINISH_NONE, INLAY_OK},
        {37, 1, 1, INLAY_FINISH_LENGTH, INLAY_OK},
        {37, 1, 1, INLAY_FINISH_NONE, INLAY_E_FORMAT},  // goes on after its limit
        {37, 2, 1, INLAY_FINISH_NONE, INLAY_E_FORMAT},  // more than its limit
        {37, 2, 1, INLAY_FINISH_LENGTH, INLAY_E_FORMAT},
        {37, 37, 0, INLAY_FINISH_NONE, INLAY_OK},
        {37, 38, 0, INLAY_FINISH_NONE, INLAY_E_FORMAT},  // all of them, without a prompt
        {37, UINT64_MAX, 0, INLAY_FINISH_NONE, INLAY_E_FORMAT},
        {38, 1, 0, INLAY_FINISH_STOP, INLAY_OK},
        {37, 1, 0, INLAY_FINISH_STOP, INLAY_E_FORMAT},  // ended by a token that was not computed
        {37, 1, 0, INLAY_FINISH_CANCELLED, INLAY_E_FORMAT},
        {37, 1, 0, -1, INLAY_E_FORMAT},
    };
    for (const Change& change : changes) {
        CAPTURE(change.highest_computed, change.n_new, change.max_new, change.finish);
        CHECK(fixture.status_after([&](std::string& bytes) {
            set_value(bytes, state + 16, change.highest_computed);
            set_value(bytes, state + 24, change.n_new);
            set_value(bytes, state + 40, change.max_new);
            set_value(bytes, state + 68, change.finish);
        }) == change.status);
    }
    // A character of which one byte is there; an ended text has none.
    for (const int32_t finish : {INLAY_FINISH_NONE, INLAY_FINISH_LENGTH}) {
        CHECK(fixture.status_after([&](std::string& bytes) {
            set_value(bytes, state + 68, finish);
            set_value(bytes, state + 72, uint32_t{1});
            set_value(bytes, state + 76, uint32_t{0xc3});
        }) == (finish == INLAY_FINISH_NONE ? INLAY_OK : INLAY_E_FORMAT));
    }
    const std::string empty = saved(create_session(fixture.cache.get()).get());
    REQUIRE(fixture.status_of(empty) == INLAY_OK);
    const size_t empty_state = section_begin(empty, kSavedState);
    for (const size_t at : {24, 68}) {  // tokens generated, an ending
        std::string changed = empty;
        set_value(changed, empty_state + at, uint32_t{1});
        reseal(changed);
        CHECK(fixture.status_of(changed) == INLAY_E_FORMAT);
    }
    std::string changed = empty;
    set_value(changed, empty_state + 72, uint32_t{1});
    set_value(changed, empty_state + 76, uint32_t{0xc3});
    reseal(changed);
    CHECK(fixture.status_of(changed) == INLAY_E_FORMAT);
}

TEST_CASE("keys and values that are no finite numbers are refused") {
    for (const int32_t kv_type : {INLAY_KV_F16, INLAY_KV_F32}) {
        const Fixture fixture("tiny/llama/llama.f16.gguf", kv_type);
        const size_t first = section_begin(fixture.bytes, kSavedBlocks) + 16;  // of the only group's pages
        const size_t n = fixture.bytes.size() - 8 - first;
        for (size_t at = 0; at < n; at += 4 * 601) {
            CAPTURE(kv_type, at);
            const size_t place = first + at;
            CHECK(fixture.status_with<uint16_t>(place, 0) == INLAY_OK);
            if (kv_type == INLAY_KV_F16) {
                for (const uint16_t bits : std::initializer_list<uint16_t>{0x7c00, 0xfc00, 0x7e01, 0xffff})
                    CHECK(fixture.status_with<uint16_t>(place, bits) == INLAY_E_FORMAT);
            } else {
                for (const uint32_t bits : {0x7f800000u, 0xff800000u, 0x7fc00001u})
                    CHECK(fixture.status_with<uint32_t>(place, bits) == INLAY_E_FORMAT);
            }
        }
    }
}

TEST_CASE("positions that were not computed are saved as zeros") {
    const Fixture fixture;
    const SessionPtr other = create_session(fixture.cache.get());
    inlay_session* raw = nullptr;
    REQUIRE(inlay_session_fork(fixture.original.get(), 34, &raw, nullptr) == INLAY_OK);  // 2 of 16 in the last block
    const SessionPtr fork(raw);
    const std::string bytes = saved(fork.get());
    const size_t first = section_begin(bytes, kSavedBlocks) + 16;
    const size_t page = (bytes.size() - 8 - first) / 3;
    const size_t last = first + 2 * page;
    // Keys lie [dim, 16]: two positions, then fourteen zeros.
    CHECK(bytes.substr(last, 4) != std::string(4, '\0'));
    CHECK(bytes.substr(last + 4, 28) == std::string(28, '\0'));
    CHECK(bytes.substr(last + 36, 28) == std::string(28, '\0'));
}
