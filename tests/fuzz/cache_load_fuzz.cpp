// libFuzzer: any bytes are loaded as a cache's pins or refused, and what was loaded is saved as the same bytes. The
// lowest bit of the first byte says whether the checksums are written anew, so that what they guard is reached; the
// next, which model: one with windows, or one without.
#include "tests/fuzz/saved_fuzz.h"

using namespace inlay;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static const std::shared_ptr<const EngineCache> plain = test::open_cache("/tiny/llama/llama.f16.gguf");
    static const std::shared_ptr<const EngineCache> windows =
        test::open_cache("/tiny/gemma3_text/gemma3_text.f32.gguf");
    if (size == 0) return 0;
    const EngineCache& cache = (data[0] & 2) != 0 ? *windows : *plain;
    std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    if ((data[0] & 1) != 0) test::reseal(bytes);
    try {
        test::Bytes source(bytes);
        const EngineCache::LoadedPins loaded = cache.load_pins(source);
        cache.cache().check_invariants();
        test::String saved;
        cache.save_pins(saved);
        if (saved.bytes.size() != saved.n_expected) __builtin_trap();
        // Read again it is the same; the nodes may have come in another order.
        test::Bytes again(saved.bytes);
        const EngineCache::LoadedPins twice = cache.load_pins(again);
        if (twice.n_pins != loaded.n_pins || twice.n_tokens != loaded.n_tokens) __builtin_trap();
        for (uint64_t i = 0; i < 2 * loaded.n_pins; ++i) cache.unpin(loaded.first_id + i);
        cache.cache().check_invariants();
        cache.cache().clear();
    } catch (const Error& error) {
        if (!test::is_expected(error)) __builtin_trap();
    }
    if (cache.cache().stats().n_used_blocks + cache.cache().stats().n_cached_blocks != 0) __builtin_trap();
    return 0;
}
