// The paged cache of one engine's sessions, holding the engine.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "base/error.h"
#include "cache/cache.h"
#include "engine/engine.h"
#include "engine/saved_stream.h"

namespace inlay {

// The pages of a model's layers for these element types.
KvLayout kv_layout_of(const ModelSpec& spec, KvType key_type, KvType value_type);

// Bytes of a cache for n_tokens tokens of one sequence when no step computes more than max_step_tokens.
uint64_t kv_bytes_for(const KvLayout& layout, uint64_t n_tokens, uint64_t max_step_tokens);

// INLAY_E_CACHE_FULL; `what` needs the blocks.
Error cache_full(const char* what, const BlockNeed& need);

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

    // All pins that hold something, by ascending ids.
    void save_pins(SaveSink& sink) const;
    struct LoadedPins {
        uint64_t first_id;  // the others follow, in the order in which they were saved
        uint64_t n_pins;
        uint64_t n_tokens;  // of all
    };
    // Pins what was saved, as if sessions had computed it here. On a failure nothing has changed.
    LoadedPins load_pins(SaveSource& source) const;

    const Engine& engine() const { return *engine_; }
    Cache& cache() const { return cache_; }

private:
    std::shared_ptr<const Engine> engine_;
    mutable Cache cache_;
    mutable std::mutex pins_mutex_;
    mutable uint64_t last_pin_ = 0;
    mutable std::map<uint64_t, std::shared_ptr<Sequence>> pins_;  // by id
};

}  // namespace inlay
