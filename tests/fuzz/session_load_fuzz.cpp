// libFuzzer: any bytes are loaded as a session or refused, and what was loaded goes on. The first byte says how: its
// lowest bit, whether the checksums are written anew, so that what they guard is reached; the next, whether the bytes
// are trusted.
#include "engine/session.h"
#include "tests/fuzz/saved_fuzz.h"

namespace {

using namespace inlay;

void go_on(Session& session) {
    for (int i = 0; i < 3; ++i) {
        Chunk chunk;
        session.next(chunk);
    }
    test::String saved;
    session.save(saved);
    if (saved.bytes.size() != saved.n_expected) __builtin_trap();
    session.truncate(session.length() / 2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static const std::shared_ptr<const EngineCache> cache = test::open_cache("/tiny/llama/llama.f16.gguf");
    if (size == 0) return 0;
    std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    if ((data[0] & 1) != 0) test::reseal(bytes);
    try {
        Session session(cache, {});
        test::Bytes source(bytes);
        try {
            session.load(source, (data[0] & 2) != 0);
        } catch (const Error&) {
            if (session.length() != 0) __builtin_trap();
            throw;
        }
        cache->cache().check_invariants();
        go_on(session);
        cache->cache().check_invariants();
    } catch (const Error& error) {
        if (!test::is_expected(error)) __builtin_trap();
    }
    return 0;
}
