#include <limits>
#include <string>

#include "api/handles.h"
#include "api/kv_type.h"
#include "api/token_argument.h"
#include "api/versioned_struct.h"

using namespace inlay::api;
using inlay::CacheOptions;
using inlay::EngineCache;
using inlay::KvLayout;
using inlay::WhenFull;

namespace {

KvLayout layout_for(const inlay::Engine& engine, const inlay_cache_options& options) {
    return inlay::kv_layout_of(engine.spec(), kv_type(options.key_type, "options->key_type"),
                               kv_type(options.value_type, "options->value_type"));
}

WhenFull when_full(int32_t value) {
    switch (value) {
        case INLAY_WHEN_FULL_FAIL:
            return WhenFull::kFail;
        case INLAY_WHEN_FULL_WAIT:
            return WhenFull::kWait;
        case INLAY_WHEN_FULL_PREEMPT:
            return WhenFull::kPreempt;
        default:
            invalid("options->when_full is " + std::to_string(value) + ", which is none of INLAY_WHEN_FULL_*");
    }
}

CacheOptions cache_options(const inlay_cache_options& options) {
    check_flags(options.flags, INLAY_CACHE_NO_REUSE | INLAY_CACHE_COMMIT_NOW, "options->flags");
    check_reserved(options.reserved, "options->reserved");
    CacheOptions ours;
    ours.budget_bytes = options.bytes;
    ours.no_reuse = (options.flags & INLAY_CACHE_NO_REUSE) != 0;
    ours.commit_now = (options.flags & INLAY_CACHE_COMMIT_NOW) != 0;
    ours.when_full = when_full(options.when_full);
    return ours;
}

}  // namespace

int32_t inlay_cache_options_init(inlay_cache_options* options, uint32_t struct_size) {
    return init_struct(options, struct_size);
}

int32_t inlay_cache_bytes_for(const inlay_engine* engine, const inlay_cache_options* options, uint64_t n_tokens,
                              uint64_t* bytes, inlay_error** error) {
    if (bytes) *bytes = 0;
    return guarded(error, [&] {
        require(bytes, "bytes");
        const auto shared = require(engine, "engine").share("engine");
        shared->require_weights();
        const KvLayout layout = layout_for(*shared, read_struct(options, "options"));
        if (n_tokens > std::numeric_limits<uint64_t>::max() / 2 / layout.bytes_per_token())
            invalid("n_tokens is " + std::to_string(n_tokens) + ", more than memory can hold");
        *bytes = inlay::kv_bytes_for(layout, n_tokens, shared->max_step_tokens());
        return INLAY_OK;
    });
}

int32_t inlay_cache_create(const inlay_engine* engine, const inlay_cache_options* options, inlay_cache** cache,
                           inlay_error** error) {
    if (cache) *cache = nullptr;
    return guarded(error, [&] {
        require(cache, "cache");
        const auto shared = require(engine, "engine").share("engine");
        shared->require_weights();
        const inlay_cache_options theirs = read_struct(options, "options");
        const KvLayout layout = layout_for(*shared, theirs);
        *cache = new inlay_cache(std::make_shared<const EngineCache>(shared, layout, cache_options(theirs)));
        return INLAY_OK;
    });
}

void inlay_cache_retain(const inlay_cache* cache) {
    retain_handle(cache);
}
void inlay_cache_release(const inlay_cache* cache) {
    release_handle(cache);
}

int32_t inlay_cache_get_stats(const inlay_cache* cache, inlay_cache_stats* stats, inlay_error** error) {
    return guarded(error, [&] {
        clear_result(stats, "stats");
        const inlay::CacheStats theirs = require(cache, "cache").share("cache")->cache().stats();
        inlay_cache_stats ours{};
        ours.block_tokens = static_cast<uint32_t>(inlay::kBlockTokens);
        ours.budget_bytes = theirs.budget_bytes;
        ours.block_bytes = theirs.block_bytes;
        ours.n_blocks = theirs.n_blocks;
        ours.n_used_blocks = theirs.n_used_blocks;
        ours.n_cached_blocks = theirs.n_cached_blocks;
        ours.n_free_blocks = theirs.n_free_blocks;
        ours.n_shared_blocks = theirs.n_shared_blocks;
        ours.used_bytes = theirs.used_bytes;
        ours.table_bytes = theirs.table_bytes;
        ours.n_prefix_hits = theirs.n_prefix_hits;
        ours.n_reused_tokens = theirs.n_reused_tokens;
        ours.n_evicted_blocks = theirs.n_evicted_blocks;
        ours.n_promised_blocks = theirs.n_promised_blocks;
        ours.n_preemptions = theirs.n_preemptions;
        write_struct(ours, stats);
        return INLAY_OK;
    });
}

int32_t inlay_cache_pin(const inlay_cache* cache, const int32_t* tokens, size_t n_tokens, uint64_t cache_salt,
                        uint64_t* pin, uint64_t* n_held, inlay_error** error) {
    if (pin) *pin = 0;
    if (n_held) *n_held = 0;
    return guarded(error, [&] {
        require(pin, "pin");
        const auto shared = require(cache, "cache").share("cache");
        if (n_tokens == 0) invalid("n_tokens is 0");
        const EngineCache::Pin made =
            shared->pin(token_argument(tokens, n_tokens, shared->engine().n_vocabulary()), cache_salt);
        *pin = made.id;
        if (n_held) *n_held = made.n_tokens;
        return INLAY_OK;
    });
}

int32_t inlay_cache_unpin(const inlay_cache* cache, uint64_t pin, inlay_error** error) {
    return guarded(error, [&] {
        require(cache, "cache").share("cache")->unpin(pin);
        return INLAY_OK;
    });
}

int32_t inlay_cache_trim(const inlay_cache* cache, inlay_error** error) {
    return guarded(error, [&] {
        require(cache, "cache").share("cache")->cache().trim();
        return INLAY_OK;
    });
}

int32_t inlay_cache_clear(const inlay_cache* cache, inlay_error** error) {
    return guarded(error, [&] {
        require(cache, "cache").share("cache")->cache().clear();
        return INLAY_OK;
    });
}
