// The paged cache of one engine's sessions, holding the engine.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "cache/cache.h"
#include "engine/engine.h"

namespace inlay {

// The pages of a model's layers for these element types.
KvLayout kv_layout_of(const ModelSpec& spec, KvType key_type, KvType value_type);

// Bytes of the blocks that n_tokens tokens of one sequence take when no step computes more than max_step_tokens.
uint64_t kv_bytes_for(const KvLayout& layout, uint64_t n_tokens, uint64_t max_step_tokens);

class EngineCache final {
public:
    // The engine must have weights. A budget of 0 is the default one.
    EngineCache(std::shared_ptr<const Engine> engine, const KvLayout& layout, const CacheOptions& options);

    struct Pin {
        uint64_t id;        // never 0
        uint64_t n_tokens;  // how many are held
    };
    // Holds what the cache has of a prefix, by whole blocks, so that it is not given up.
    Pin pin(std::span<const int32_t> tokens, uint64_t cache_salt) const;
    // INLAY_E_INVALID_ARGUMENT when there is no such pin.
    void unpin(uint64_t id) const;

    const Engine& engine() const { return *engine_; }
    Cache& cache() const { return cache_; }

private:
    std::shared_ptr<const Engine> engine_;
    mutable Cache cache_;
    mutable std::mutex pins_mutex_;
    mutable uint64_t last_pin_ = 0;
    mutable std::map<uint64_t, std::unique_ptr<Sequence>> pins_;  // by id
};

}  // namespace inlay
