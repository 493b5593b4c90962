// What the fuzz targets of saved bytes share: a cache to load into, and streams.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/printable.h"
#include "engine/engine_cache.h"
#include "engine/saved_stream.h"
#include "tests/api/saved_bytes.h"

namespace inlay::test {

// A buffer's bytes, of which none may be left.
class Bytes final : public SaveSource {
public:
    explicit Bytes(const std::string& bytes) : bytes_(bytes) {}
    size_t read(void* buffer, size_t n) override {
        n = std::min(n, bytes_.size() - at_);
        std::memcpy(buffer, bytes_.data() + at_, n);
        at_ += n;
        return n;
    }
    void end() override {
        if (at_ != bytes_.size()) throw_damaged("bytes follow");
    }

private:
    const std::string& bytes_;
    size_t at_ = 0;
};

class String final : public SaveSink {
public:
    bool expects(uint64_t n_bytes) override {
        n_expected = n_bytes;
        return true;
    }
    void write(const void* data, size_t n) override { bytes.append(static_cast<const char*>(data), n); }

    std::string bytes;
    uint64_t n_expected = 0;
};

inline std::shared_ptr<const EngineCache> open_cache(const char* model) {
    EngineOptions options;
    options.n_threads = 1;
    options.kernels = &kernels::portable();
    const auto engine = Engine::open(std::string(INLAY_TEST_DATA_DIR) + model, options);
    const KvLayout layout = kv_layout_of(engine->spec(), KvType::kF16, KvType::kF16);
    return std::make_shared<const EngineCache>(engine, layout, CacheOptions{.budget_bytes = layout.page_bytes * 16});
}

inline bool is_expected(const Error& error) {
    const int32_t status = error.status();
    const bool is_known = status == INLAY_E_FORMAT || status == INLAY_E_UNSUPPORTED || status == INLAY_E_MISMATCH ||
                          status == INLAY_E_CONTEXT_FULL || status == INLAY_E_CACHE_FULL || status == INLAY_E_STATE;
    return is_known && is_printable(error.sentence());
}

}  // namespace inlay::test
