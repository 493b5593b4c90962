#include "engine/engine_cache.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/saved_prefixes.h"

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
    return std::max(layout.blocks_for(n_tokens, max_step_tokens) * layout.page_bytes, layout.least_bytes());
}

Error cache_full(const char* what, const BlockNeed& need) {
    return {INLAY_E_CACHE_FULL, std::string(what) + " needs " + std::to_string(need.n_needed) +
                                    " more blocks of the cache and " + std::to_string(need.n_available) +
                                    " are free or can be freed"};
}

EngineCache::EngineCache(std::shared_ptr<const Engine> engine, const KvLayout& layout, const CacheOptions& options)
    : engine_(std::move(engine)), cache_(layout, engine_->pages(), for_engine(options, layout, *engine_)) {}

EngineCache::Pin EngineCache::pin(std::span<const int32_t> tokens, uint64_t cache_salt) const {
    auto sequence = std::make_shared<Sequence>(cache_, cache_salt, true);
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

void EngineCache::save_pins(SaveSink& sink) const {
    // Holds the sequences, so that others may unpin while the host writes.
    std::vector<std::shared_ptr<const Sequence>> pins;
    {
        const std::lock_guard lock(pins_mutex_);
        for (const auto& [id, sequence] : pins_) pins.push_back(sequence);
    }
    write_saved_prefixes(sink, *engine_, cache_.layout(), pins);
}

EngineCache::LoadedPins EngineCache::load_pins(SaveSource& source) const {
    if (!cache_.reuses())
        throw Error(INLAY_E_UNSUPPORTED, "the cache was created with INLAY_CACHE_NO_REUSE: nobody would find the pins");
    const SavedPrefixes saved = read_saved_prefixes(source, *engine_, cache_.layout(), cache_.n_blocks());
    std::map<uint64_t, std::shared_ptr<Sequence>> loaded;
    std::vector<RestoredPrefix> prefixes;
    uint64_t n_tokens = 0;
    for (const SavedPrefix& pin : saved.pins) {
        auto sequence = std::make_shared<Sequence>(cache_, pin.extra_key, true);
        prefixes.push_back({*sequence, pin.tokens, pin.pages});
        loaded.emplace(loaded.size(), std::move(sequence));
        n_tokens += pin.tokens.size();
    }
    if (const BlockNeed need = cache_.restore_prefixes(prefixes); !need) throw cache_full("what was saved", need);

    const std::lock_guard lock(pins_mutex_);
    const LoadedPins result{loaded.empty() ? 0 : last_pin_ + 1, loaded.size(), n_tokens};
    while (!loaded.empty()) {
        auto pin = loaded.extract(loaded.begin());
        pin.key() = ++last_pin_;
        pins_.insert(std::move(pin));
    }
    return result;
}

}  // namespace inlay
