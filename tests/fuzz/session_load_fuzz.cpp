// libFuzzer: any bytes are loaded as a session or refused, and what was loaded goes on. The first byte says how: its
// lowest bit, whether the checksums are written anew, so that what they guard is reached; the next, whether the bytes
// are trusted.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/printable.h"
#include "engine/saved_session_stream.h"
#include "engine/session.h"
#include "tests/api/saved_bytes.h"

namespace {

using namespace inlay;

class Bytes final : public SaveSource {
public:
    explicit Bytes(const std::string& bytes) : bytes_(bytes) {}
    size_t read(void* buffer, size_t n) override {
        n = std::min(n, bytes_.size() - at_);
        std::memcpy(buffer, bytes_.data() + at_, n);
        at_ += n;
        return n;
    }

private:
    const std::string& bytes_;
    size_t at_ = 0;
};

class Nowhere final : public SaveSink {
public:
    void write(const void* /*bytes*/, size_t /*n*/) override {}
};

std::shared_ptr<const EngineCache> open_cache() {
    EngineOptions options;
    options.n_threads = 1;
    options.kernels = &kernels::portable();
    const auto engine = Engine::open(INLAY_TEST_DATA_DIR "/tiny/llama/llama.f16.gguf", options);
    const KvLayout layout = kv_layout_of(engine->spec(), KvType::kF16, KvType::kF16);
    return std::make_shared<const EngineCache>(engine, layout, CacheOptions{.budget_bytes = layout.page_bytes * 16});
}

bool is_expected(int32_t status) {
    return status == INLAY_E_FORMAT || status == INLAY_E_UNSUPPORTED || status == INLAY_E_MISMATCH ||
           status == INLAY_E_CONTEXT_FULL || status == INLAY_E_CACHE_FULL || status == INLAY_E_STATE;
}

void go_on(Session& session) {
    for (int i = 0; i < 3; ++i) {
        Chunk chunk;
        session.next(chunk);
    }
    Nowhere nowhere;
    session.save(nowhere);
    session.truncate(session.length() / 2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static const std::shared_ptr<const EngineCache> cache = open_cache();
    if (size == 0) return 0;
    std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    if ((data[0] & 1) != 0) test::reseal(bytes);
    try {
        Session session(cache, {});
        Bytes source(bytes);
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
        if (!is_expected(error.status()) || !is_printable(error.sentence())) __builtin_trap();
    }
    return 0;
}
