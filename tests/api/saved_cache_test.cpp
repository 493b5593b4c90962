// Pinned prefixes on disk: a program starts with its system prompt computed.
#include <atomic>
#include <functional>
#include <limits>
#include <thread>

#include "saved_session.h"

using namespace inlay::test;

namespace {

inlay_cache_load_result no_result() {
    inlay_cache_load_result result{};
    result.struct_size = sizeof result;
    return result;
}

SessionPtr salted_session(const Place& place, uint64_t salt) {
    inlay_session_options options{};
    options.struct_size = sizeof options;
    options.cache_salt = salt;
    inlay_session* raw = nullptr;
    REQUIRE(inlay_session_create(place.cache.get(), &options, &raw, nullptr) == INLAY_OK);
    return SessionPtr(raw);
}

struct Answer {
    Continuation text;
    uint64_t n_reused;
};

Answer answer(const Place& place, const std::vector<int32_t>& prompt, uint64_t salt = 0) {
    const SessionPtr session = salted_session(place, salt);
    append(session.get(), prompt);
    const Continuation text = go_on(session, 12);
    return {text, stats_of(session).n_reused_tokens};
}

std::vector<int32_t> joined(std::vector<int32_t> tokens, const std::vector<int32_t>& more) {
    tokens.insert(tokens.end(), more.begin(), more.end());
    return tokens;
}

uint64_t budget_for(const Place& place, const Model& model, uint64_t n_tokens) {
    inlay_cache_options options{};
    options.struct_size = sizeof options;
    options.key_type = options.value_type = model.kv_type;
    uint64_t bytes = 0;
    REQUIRE(inlay_cache_bytes_for(place.engine.get(), &options, n_tokens, &bytes, nullptr) == INLAY_OK);
    return bytes;
}

bool is_as_before(const inlay_cache_stats& before, const inlay_cache_stats& after) {
    return before.n_used_blocks == after.n_used_blocks && before.n_cached_blocks == after.n_cached_blocks &&
           before.n_free_blocks == after.n_free_blocks && before.n_evicted_blocks == after.n_evicted_blocks;
}

}  // namespace

TEST_CASE("a program starts with its system prompt warm") {
    for (const Model& model : kModels) {
        const Place here(model);
        for (const size_t n_prompt : {16, 70, 200}) {
            CAPTURE(model.path, model.kv_type, n_prompt);
            const std::vector<int32_t> prompt = tokens_of(n_prompt, n_prompt);
            const uint64_t number = pin(here, prompt);
            const std::string bytes = saved_pins(here.cache.get());
            const Place there(model);
            inlay_cache_load_result result = no_result();
            REQUIRE(load_pins(there.cache.get(), bytes, &result).status == INLAY_OK);
            CHECK(result.n_pins == 1);
            CHECK(result.n_tokens == n_prompt / 16 * 16);
            CHECK(saved_pins(there.cache.get()) == bytes);

            const std::vector<int32_t> question = joined(prompt, tokens_of(9, 3));
            const Answer cold = answer(Place(model), question);
            CHECK(cold.n_reused == 0);
            REQUIRE(inlay_cache_trim(there.cache.get(), nullptr) == INLAY_OK);
            const Answer warm = answer(there, question);
            CHECK(warm.n_reused == result.n_tokens);
            CHECK(warm.text == cold.text);
            CHECK(answer(there, question, 1).n_reused == 0);  // another salt

            REQUIRE(inlay_cache_unpin(there.cache.get(), result.first_pin, nullptr) == INLAY_OK);
            CHECK(inlay_cache_unpin(there.cache.get(), result.first_pin, nullptr) == INLAY_E_INVALID_ARGUMENT);
            CHECK(there.stats().n_used_blocks == 0);
            REQUIRE(inlay_cache_unpin(here.cache.get(), number, nullptr) == INLAY_OK);
        }
    }
}

TEST_CASE("pins that share a beginning are saved and held once, in their order") {
    for (const Model& model : kModels) {
        CAPTURE(model.path, model.kv_type);
        const Place here(model);
        const std::vector<int32_t> common = tokens_of(96, 1);
        const std::vector<int32_t> texts[] = {common, joined(common, tokens_of(32, 2)),
                                              joined(common, tokens_of(48, 3)), tokens_of(32, 4), common};
        const uint64_t salts[] = {0, 0, 0, 0, 7};
        for (size_t i = 0; i < 5; ++i) pin(here, texts[i], salts[i]);
        pin(here, texts[1]);  // a second time
        const std::vector<int32_t> nothing = tokens_of(40, 99);
        uint64_t number = 0;
        REQUIRE(inlay_cache_pin(here.cache.get(), nothing.data(), nothing.size(), 0, &number, nullptr, nullptr) ==
                INLAY_OK);
        const std::string bytes = saved_pins(here.cache.get());
        const inlay_cache_stats held = here.stats();
        CHECK(bytes.size() < held.used_bytes + 4096);

        // A cache that has just this room.
        const Place there(model, INLAY_COMPUTE_AUTO, held.n_used_blocks * held.block_bytes);
        inlay_cache_load_result result = no_result();
        const Outcome outcome = load_pins(there.cache.get(), bytes, &result);
        INFO(outcome.sentence);
        REQUIRE(outcome.status == INLAY_OK);
        CHECK(result.n_pins == 6);
        CHECK(result.n_tokens == 96 + 128 + 144 + 32 + 96 + 128);
        CHECK(there.stats().n_used_blocks == held.n_used_blocks);
        CHECK(there.stats().n_shared_blocks == held.n_shared_blocks);
        CHECK(saved_pins(there.cache.get()) == bytes);

        const Place roomy(model);
        REQUIRE(load_pins(roomy.cache.get(), bytes, &result).status == INLAY_OK);
        for (size_t i = 0; i < 5; ++i) {
            const std::vector<int32_t> question = joined(texts[i], {5});
            const Answer warm = answer(roomy, question, salts[i]);
            CHECK(warm.n_reused == texts[i].size());
            CHECK(warm.text == answer(Place(model), question).text);
        }
        REQUIRE(inlay_cache_clear(roomy.cache.get(), nullptr) == INLAY_OK);
        REQUIRE(inlay_cache_unpin(roomy.cache.get(), result.first_pin + 4, nullptr) == INLAY_OK);
        REQUIRE(inlay_cache_clear(roomy.cache.get(), nullptr) == INLAY_OK);
        CHECK(answer(roomy, joined(common, {5}), 7).n_reused == 0);
        CHECK(answer(roomy, joined(common, {5}), 0).n_reused == 96);
    }
}

TEST_CASE("what the cache has already is taken over") {
    for (const Model& model : kModels) {
        CAPTURE(model.path, model.kv_type);
        const Place here(model);
        const uint64_t number = pin(here, tokens_of(160, 1));
        const std::string bytes = saved_pins(here.cache.get());
        const inlay_cache_stats held = here.stats();
        inlay_cache_load_result result = no_result();
        REQUIRE(load_pins(here.cache.get(), bytes, &result).status == INLAY_OK);
        CHECK(result.first_pin == number + 1);
        CHECK(is_as_before(held, here.stats()));
        REQUIRE(inlay_cache_unpin(here.cache.get(), number, nullptr) == INLAY_OK);
        REQUIRE(inlay_cache_unpin(here.cache.get(), result.first_pin, nullptr) == INLAY_OK);
        CHECK(here.stats().n_used_blocks == 0);
        REQUIRE(load_pins(here.cache.get(), bytes, &result).status == INLAY_OK);  // of cached blocks
        CHECK(here.stats().n_used_blocks == held.n_used_blocks);
        CHECK(here.stats().n_evicted_blocks == held.n_evicted_blocks);
        CHECK(answer(here, joined(tokens_of(160, 1), {5})).n_reused == 160);

        // A part of it, in a cache whose other blocks have to go.
        const Place narrow(model, INLAY_COMPUTE_AUTO, budget_for(here, model, 240));
        answer(narrow, tokens_of(70, 1));
        answer(narrow, tokens_of(120, 50));
        REQUIRE(load_pins(narrow.cache.get(), bytes).status == INLAY_OK);
        CHECK(narrow.stats().n_used_blocks == held.n_used_blocks);
        CHECK(saved_pins(narrow.cache.get()) == bytes);
    }
}

TEST_CASE("pins that find no room change nothing") {
    for (const Model& model : kModels) {
        // These sessions would have blocks beside those that are counted here.
        if (model.kv_type == INLAY_KV_INT8 || model.kv_type == INLAY_KV_INT4) continue;
        for (const int32_t when_full : {INLAY_WHEN_FULL_FAIL, INLAY_WHEN_FULL_WAIT, INLAY_WHEN_FULL_PREEMPT}) {
            CAPTURE(model.path, model.kv_type, when_full);
            const Place here(model, INLAY_COMPUTE_AUTO, 16 << 20);
            const bool has_windows = model.path != kModels[0].path;
            for (uint64_t salt = 0; salt < (has_windows ? 6 : 1); ++salt) pin(here, tokens_of(160, 1), salt);
            const std::string bytes = saved_pins(here.cache.get());
            const Place narrow(model, INLAY_COMPUTE_AUTO, budget_for(here, model, 240), when_full);
            const SessionPtr session = narrow.session();
            append(session.get(), tokens_of(200, 9));
            const Continuation first = go_on(session, 3);
            answer(narrow, tokens_of(20, 5));  // something cached
            const inlay_cache_stats before = narrow.stats();
            inlay_cache_load_result result = no_result();
            const Outcome outcome = load_pins(narrow.cache.get(), bytes, &result);
            CHECK(outcome.status == INLAY_E_CACHE_FULL);
            CHECK_THAT(outcome.sentence, Catch::Contains(has_windows ? "blocks" : "10 more blocks"));
            CHECK(result.n_pins == 0);
            CHECK(result.first_pin == 0);
            CHECK(is_as_before(before, narrow.stats()));
            CHECK(answer(Place(model), joined(tokens_of(200, 9), first.tokens)).text.tokens ==
                  go_on(session, 12).tokens);

            const Place tiny(model, INLAY_COMPUTE_AUTO, budget_for(here, model, 32), when_full);
            CHECK(load_pins(tiny.cache.get(), bytes).status == INLAY_E_CACHE_FULL);
            CHECK(tiny.stats().n_used_blocks == 0);
        }
    }
}

TEST_CASE("of windows a pin saves what is needed to go on after it") {
    const Model model = kModels[2];
    const auto size_of = [&](size_t n) {
        const Place place(model, INLAY_COMPUTE_AUTO, 16 << 20);
        pin(place, tokens_of(n, 1));
        return saved_pins(place.cache.get()).size();
    };
    const size_t n_more = size_of(800) - size_of(400);  // 25 blocks
    const inlay_cache_stats stats = Place(model).stats();
    CHECK(n_more < 26 * (stats.block_bytes + 80));  // of the one group without a window
}

TEST_CASE("no pins are saved and loaded too") {
    const Place here(kModels[0]), there(kModels[0]);
    inlay_cache_load_result result = no_result();
    REQUIRE(load_pins(there.cache.get(), saved_pins(here.cache.get()), &result).status == INLAY_OK);
    CHECK(result.n_pins == 0);
    CHECK(result.first_pin == 0);
}

TEST_CASE("pins are for a cache that shares, of bytes that are trusted, computed as it computes") {
    const Place here(kModels[0]);
    pin(here, tokens_of(40, 1));
    const std::string bytes = saved_pins(here.cache.get());
    const auto refused = [&](const Place& place, uint32_t flags, int32_t status, const char* word) {
        const Outcome outcome = load_pins(place.cache.get(), bytes, nullptr, flags);
        CHECK(outcome.status == status);
        CHECK_THAT(outcome.sentence, Catch::Contains(word));
        CHECK(place.stats().n_used_blocks + place.stats().n_cached_blocks == 0);
    };
    refused(Place(kModels[0]), 0, INLAY_E_INVALID_ARGUMENT, "INLAY_LOAD_TRUSTED");
    refused(Place(kModels[0]), 3, INLAY_E_UNSUPPORTED, "flags");
    refused(Place(kModels[0], INLAY_COMPUTE_AUTO, 0, INLAY_WHEN_FULL_FAIL, INLAY_CACHE_NO_REUSE), INLAY_LOAD_TRUSTED,
            INLAY_E_UNSUPPORTED, "INLAY_CACHE_NO_REUSE");
    refused(Place(kModels[0], INLAY_COMPUTE_F32), INLAY_LOAD_TRUSTED, INLAY_E_MISMATCH, "compute mode");
    refused(Place(kModels[1]), INLAY_LOAD_TRUSTED, INLAY_E_MISMATCH, "types");
    refused(Place(kModels[2]), INLAY_LOAD_TRUSTED, INLAY_E_MISMATCH, "another model");
    CHECK(load(here.session().get(), bytes).status == INLAY_E_FORMAT);
    const Outcome session = load_pins(here.cache.get(), saved(here.session().get()));
    CHECK(session.status == INLAY_E_FORMAT);
    CHECK_THAT(session.sentence, Catch::Contains("INLAYPIN"));
    CHECK(inlay_cache_load(here.cache.get(), INLAY_LOAD_TRUSTED, nullptr, nullptr, nullptr, nullptr) ==
          INLAY_E_INVALID_ARGUMENT);
    CHECK(inlay_cache_save(here.cache.get(), nullptr, nullptr, nullptr) == INLAY_E_INVALID_ARGUMENT);
    CHECK(load_pins(nullptr, bytes).status == INLAY_E_INVALID_ARGUMENT);
}

TEST_CASE("pins that are cut, damaged or lie are refused, and change nothing") {
    const Place here(kModels[2]), there(kModels[2]);
    const std::vector<int32_t> common = tokens_of(32, 1);
    pin(here, joined(common, tokens_of(16, 2)));
    pin(here, joined(common, tokens_of(16, 3)), 0);
    const std::string bytes = saved_pins(here.cache.get());
    REQUIRE(load_pins(here.cache.get(), bytes).status == INLAY_OK);
    const auto status_of = [&](const std::string& changed) {
        const Outcome outcome = load_pins(there.cache.get(), changed);
        CHECK(there.stats().n_used_blocks + there.stats().n_cached_blocks == 0);
        CHECK_THAT(outcome.sentence, Catch::Contains("s"));
        return outcome.status;
    };
    for (size_t n = 0; n < bytes.size(); n += n < 1500 ? 1 : 509) {
        CAPTURE(n);
        REQUIRE(status_of(bytes.substr(0, n)) == INLAY_E_FORMAT);
        std::string changed = bytes;
        changed[n] = static_cast<char>(changed[n] ^ (1 << n % 8));
        REQUIRE(status_of(changed) == INLAY_E_FORMAT);
    }

    const auto status_with = [&](size_t at, auto value) {
        std::string changed = bytes;
        set_value(changed, at, value);
        reseal(changed);
        return status_of(changed);
    };
    CHECK(status_with(8, uint32_t{2}) == INLAY_E_UNSUPPORTED);
    CHECK(status_with(12, uint32_t{5}) == INLAY_E_UNSUPPORTED);
    CHECK(status_with(40, uint32_t{0}) == INLAY_E_MISMATCH);  // numerics
    for (const uint32_t kind : {kSavedNodes, kSavedPins, kSavedBlocks}) {
        CAPTURE(kind);
        const size_t begin = section_begin(bytes, kind);
        for (const uint64_t n : {uint64_t{0}, uint64_t{1} << 40, UINT64_MAX, value_at<uint64_t>(bytes, begin - 8) - 1})
            CHECK(status_with(begin - 8, n) == INLAY_E_FORMAT);
    }
    const size_t nodes = section_begin(bytes, kSavedNodes);  // 1 - 2 - 3, and 2 - 4
    for (const uint64_t parent : {uint64_t{2}, uint64_t{5}, UINT64_MAX})
        CHECK(status_with(nodes + 80, parent) == INLAY_E_FORMAT);
    CHECK(status_with(nodes + 80, uint64_t{0}) == INLAY_E_FORMAT);      // node 1 is nobody's then
    CHECK(status_with(nodes + 80 + 8, uint64_t{3}) == INLAY_E_FORMAT);  // another salt than its parent
    for (const int32_t token : {-1, 1 << 30}) CHECK(status_with(nodes + 16, token) == INLAY_E_FORMAT);
    std::string twice = bytes;
    std::memcpy(twice.data() + nodes + 3 * 80, twice.data() + nodes + 2 * 80, 80);
    reseal(twice);
    CHECK(status_of(twice) == INLAY_E_FORMAT);
    const size_t pins = section_begin(bytes, kSavedPins);
    REQUIRE(value_at<uint64_t>(bytes, pins) == 3);
    for (const uint64_t node : {uint64_t{0}, uint64_t{2}, uint64_t{4}, uint64_t{5}, UINT64_MAX})
        CHECK(status_with(pins, node) == INLAY_E_FORMAT);
    const size_t blocks = section_begin(bytes, kSavedBlocks);
    CHECK(status_with(blocks, uint16_t{0x7c00}) == INLAY_E_FORMAT);
    CHECK(status_with(bytes.size() - 10, std::numeric_limits<uint16_t>::max()) == INLAY_E_FORMAT);
    CHECK(load_pins(there.cache.get(), bytes).status == INLAY_OK);
}

TEST_CASE("callbacks that fail end the save or load of pins; others may unpin meanwhile") {
    const Place here(kModels[0]), there(kModels[0]);
    const uint64_t number = pin(here, tokens_of(70, 1));
    const std::string bytes = saved_pins(here.cache.get());
    struct Host {
        const Place& place;
        uint64_t number;
        int n_left;
        std::string bytes;
        int32_t unpinned = 0;
    };
    const inlay_save_callback write = [](void* user, const void* data, size_t size) -> int32_t {
        auto& host = *static_cast<Host*>(user);
        if (host.number) host.unpinned = inlay_cache_unpin(host.place.cache.get(), host.number, nullptr);
        host.number = 0;
        host.bytes.append(static_cast<const char*>(data), size);
        return host.n_left-- == 0 ? 5 : 0;
    };
    for (int n = 0; n < 8; ++n) {
        Host host{here, 0, n, {}};
        const Outcome outcome =
            outcome_of([&](inlay_error** error) { return inlay_cache_save(here.cache.get(), write, &host, error); });
        CHECK(outcome.status == INLAY_E_IO);
        CHECK_THAT(outcome.sentence, Catch::Contains("write returned 5"));
    }
    Host host{here, number, 1000, {}};
    REQUIRE(inlay_cache_save(here.cache.get(), write, &host, nullptr) == INLAY_OK);
    CHECK(host.unpinned == INLAY_OK);
    CHECK(host.bytes == bytes);
    CHECK(here.stats().n_used_blocks == 0);

    struct Reader {
        ByteReader bytes;
        int n_left;
    };
    const inlay_load_callback read = [](void* user, void* buffer, size_t size, size_t* n_read) -> int32_t {
        auto& reader = *static_cast<Reader*>(user);
        return reader.n_left-- == 0 ? -3 : ByteReader::read(&reader.bytes, buffer, size, n_read);
    };
    for (int n = 0;; ++n) {
        Reader reader{{bytes}, n};
        const Outcome outcome = outcome_of([&](inlay_error** error) {
            return inlay_cache_load(there.cache.get(), INLAY_LOAD_TRUSTED, read, &reader, nullptr, error);
        });
        if (outcome.status == INLAY_OK) {
            CHECK(n > 10);
            break;
        }
        CHECK(outcome.status == INLAY_E_IO);
        CHECK_THAT(outcome.sentence, Catch::Contains("read returned -3"));
        CHECK(there.stats().n_used_blocks == 0);
    }
}

TEST_CASE("sessions go on while pins are loaded, saved and ended") {
    for (const Model& model : {kModels[0], kModels[3]}) {
        CAPTURE(model.path);
        const Place here(model);
        const std::vector<int32_t> common = tokens_of(64, 1);
        pin(here, common);
        pin(here, joined(common, tokens_of(32, 2)));
        const std::string bytes = saved_pins(here.cache.get());
        // Asserts nothing: any thread may call it.
        const auto text_of = [](const Place& place, const std::vector<int32_t>& prompt) {
            std::vector<int32_t> tokens;
            inlay_session* raw = nullptr;
            if (inlay_session_create(place.cache.get(), nullptr, &raw, nullptr) != INLAY_OK) return tokens;
            const SessionPtr session(raw);
            inlay_generation_options limit{};
            limit.struct_size = sizeof limit;
            limit.flags = INLAY_GENERATION_IGNORE_END;
            limit.max_new_tokens = 20;
            if (inlay_session_append_tokens(session.get(), prompt.data(), prompt.size(), nullptr) != INLAY_OK ||
                inlay_session_set_generation(session.get(), &limit, nullptr) != INLAY_OK)
                return tokens;
            for (int32_t status = INLAY_OK; status >= 0 && status != INLAY_END;) {
                inlay_chunk chunk = empty_chunk();
                status = inlay_session_next(session.get(), &chunk, nullptr);
                if (status >= 0) tokens.insert(tokens.end(), chunk.tokens, chunk.tokens + chunk.n_tokens);
            }
            return tokens;
        };
        const std::vector<int32_t> prompts[] = {joined(common, tokens_of(20, 7)), tokens_of(60, 30)};
        const Place cold(model);
        const std::vector<int32_t> expected[] = {text_of(cold, prompts[0]), text_of(cold, prompts[1])};
        const Place narrow(model, INLAY_COMPUTE_AUTO, budget_for(here, model, 300), INLAY_WHEN_FULL_PREEMPT);
        std::atomic<int> n_running{2};
        std::atomic<int> n_wrong{0};
        std::vector<std::thread> threads;
        for (size_t i = 0; i < 2; ++i)
            threads.emplace_back([&, i] {
                for (int round = 0; round < 10; ++round) n_wrong += text_of(narrow, prompts[i]) != expected[i];
                --n_running;
            });
        int n_loaded = 0;
        while (n_running > 0 || n_loaded == 0) {
            inlay_cache_load_result result = no_result();
            const Outcome outcome = load_pins(narrow.cache.get(), bytes, &result);
            if (outcome.status == INLAY_E_CACHE_FULL) continue;
            REQUIRE(outcome.status == INLAY_OK);
            ++n_loaded;
            CHECK(saved_pins(narrow.cache.get()) == bytes);
            for (uint64_t i = 0; i < result.n_pins; ++i)
                CHECK(inlay_cache_unpin(narrow.cache.get(), result.first_pin + i, nullptr) == INLAY_OK);
        }
        for (std::thread& thread : threads) thread.join();
        CHECK(n_wrong == 0);
        CHECK(narrow.stats().n_used_blocks == 0);
    }
}

TEST_CASE("sessions and pins are saved into a buffer and loaded from it") {
    const Place here(kModels[2]), there(kModels[2]);
    pin(here, tokens_of(70, 1));
    const SessionPtr session = here.session();
    append(session.get(), tokens_of(40, 1));
    go_on(session, 3);
    const inlay_cache* cache = here.cache.get();
    using Save = std::function<int32_t(void*, size_t, size_t*, inlay_error**)>;
    const Save saves[] = {[&](void* buffer, size_t capacity, size_t* needed, inlay_error** error) {
                              return inlay_session_save_to_buffer(session.get(), buffer, capacity, needed, error);
                          },
                          [&](void* buffer, size_t capacity, size_t* needed, inlay_error** error) {
                              return inlay_cache_save_to_buffer(cache, buffer, capacity, needed, error);
                          }};
    const std::string expected[] = {saved(session.get()), saved_pins(cache)};
    for (size_t i = 0; i < 2; ++i) {
        size_t needed = 1;
        REQUIRE(saves[i](nullptr, 0, &needed, nullptr) == INLAY_OK);
        REQUIRE(needed == expected[i].size());
        std::string buffer(needed, '\x55');
        const std::string untouched = buffer;
        for (const size_t capacity : {size_t{0}, size_t{1}, needed - 1}) {
            size_t n = 0;
            const Outcome outcome =
                outcome_of([&](inlay_error** error) { return saves[i](buffer.data(), capacity, &n, error); });
            CHECK(outcome.status == INLAY_E_BUFFER_TOO_SMALL);
            CHECK_THAT(outcome.sentence, Catch::Contains(std::to_string(needed)));
            CHECK(n == needed);
            CHECK(buffer == untouched);
        }
        buffer += "\x55\x55";
        size_t n = 0;
        REQUIRE(saves[i](buffer.data(), buffer.size(), &n, nullptr) == INLAY_OK);
        CHECK(n == needed);
        CHECK(buffer == expected[i] + "\x55\x55");
        CHECK(saves[i](buffer.data(), buffer.size(), nullptr, nullptr) == INLAY_E_INVALID_ARGUMENT);
    }

    using Load = std::function<int32_t(const void*, size_t, inlay_error**)>;
    const SessionPtr copy = there.session();
    inlay_load_result result = empty_result();
    inlay_cache_load_result pins = no_result();
    const Load loads[] = {[&](const void* bytes, size_t size, inlay_error** error) {
                              return inlay_session_load_from_buffer(copy.get(), 0, bytes, size, &result, error);
                          },
                          [&](const void* bytes, size_t size, inlay_error** error) {
                              return inlay_cache_load_from_buffer(there.cache.get(), INLAY_LOAD_TRUSTED, bytes, size,
                                                                  &pins, error);
                          }};
    for (size_t i = 0; i < 2; ++i) {
        const uint64_t n_used = there.stats().n_used_blocks;
        const std::string& bytes = expected[i];
        const std::string longer = bytes + "x";
        const Outcome outcome =
            outcome_of([&](inlay_error** error) { return loads[i](longer.data(), longer.size(), error); });
        CHECK(outcome.status == INLAY_E_FORMAT);
        CHECK_THAT(outcome.sentence, Catch::Contains("1 bytes follow"));
        CHECK(loads[i](bytes.data(), bytes.size() - 1, nullptr) == INLAY_E_FORMAT);
        CHECK(loads[i](nullptr, 0, nullptr) == INLAY_E_FORMAT);
        CHECK(loads[i](nullptr, 1, nullptr) == INLAY_E_INVALID_ARGUMENT);
        CHECK(there.stats().n_used_blocks == n_used);
        CHECK(loads[i](bytes.data(), bytes.size(), nullptr) == INLAY_OK);
    }
    CHECK(result.n_tokens == 43);
    CHECK(pins.n_tokens == 64);
    CHECK(go_on(copy, 5) == go_on(session, 5));
    CHECK(saved_pins(there.cache.get()) == expected[1]);
}
