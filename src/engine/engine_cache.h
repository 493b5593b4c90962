// The paged cache of one engine's sessions, holding the engine.
#pragma once

#include <memory>

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

    const Engine& engine() const { return *engine_; }
    Cache& cache() const { return cache_; }

private:
    std::shared_ptr<const Engine> engine_;
    mutable Cache cache_;
};

}  // namespace inlay
