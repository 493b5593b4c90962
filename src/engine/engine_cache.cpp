#include "engine/engine_cache.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"

namespace inlay {
namespace {

constexpr uint64_t kLargestDefaultBudget = uint64_t{1} << 30;

// Enough for one sequence of the model's context, but no more than a desktop would give without being asked.
uint64_t default_budget(const KvLayout& layout, const Engine& engine) {
    const uint64_t one_block = kv_bytes_for(layout, kBlockTokens, kBlockTokens);
    const uint64_t whole_context = kv_bytes_for(layout, engine.spec().context_tokens, engine.max_step_tokens());
    return std::max(one_block, std::min(kLargestDefaultBudget, whole_context));
}

uint64_t machine_memory() {
    return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

CacheOptions for_engine(CacheOptions options, const KvLayout& layout, const Engine& engine) {
    if (options.budget_bytes == 0) options.budget_bytes = default_budget(layout, engine);
    // Address space for more could be had, but never filled.
    if (const uint64_t memory = machine_memory(); options.budget_bytes > memory)
        throw Error(INLAY_E_INVALID_ARGUMENT, "options->bytes is " + std::to_string(options.budget_bytes) +
                                                  " but the machine has " + std::to_string(memory));
    options.max_step_tokens = engine.max_step_tokens();
    return options;
}

}  // namespace

KvLayout kv_layout_of(const ModelSpec& spec, KvType key_type, KvType value_type) {
    const KvPlane plane{spec.n_kv_heads, spec.head_dim, spec.value_dim};
    std::vector<KvLayer> layers;
    for (const LayerSpec& layer : spec.layers) layers.push_back({plane, layer.window});
    return make_kv_layout(layers, key_type, value_type);
}

uint64_t kv_bytes_for(const KvLayout& layout, uint64_t n_tokens, uint64_t max_step_tokens) {
    return layout.blocks_for(n_tokens, max_step_tokens) * layout.page_bytes;
}

EngineCache::EngineCache(std::shared_ptr<const Engine> engine, const KvLayout& layout, const CacheOptions& options)
    : engine_(std::move(engine)), cache_(layout, engine_->pages(), for_engine(options, layout, *engine_)) {}

EngineCache::Pin EngineCache::pin(std::span<const int32_t> tokens, uint64_t cache_salt) const {
    auto sequence = std::make_unique<Sequence>(cache_, cache_salt, true);
    cache_.append(*sequence, tokens);
    cache_.append(*sequence, tokens.last(1));  // the last token of all is never taken over
    cache_.adopt_prefix(*sequence);
    const uint64_t n_tokens = sequence->n_computed();
    const std::lock_guard lock(pins_mutex_);
    pins_.emplace(last_pin_ + 1, std::move(sequence));
    return {++last_pin_, n_tokens};
}

void EngineCache::unpin(uint64_t id) const {
    const std::lock_guard lock(pins_mutex_);
    if (pins_.erase(id) == 0)
        throw Error(INLAY_E_INVALID_ARGUMENT, "pin is " + std::to_string(id) + ", which this cache did not give");
}

}  // namespace inlay
