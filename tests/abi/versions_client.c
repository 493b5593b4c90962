/*
 * A host compiled against one version of the header and run with the library of another. Every result lies between
 * guards, so that a library that writes what this host does not know is caught. Compiled with LATER_FIELD, the host
 * also asks for what only the newer header has, and expects the status that is named on the command line. Usage:
 * versions_client MODEL [STATUS_OF_LATER_FIELDS]
 */
#include <stdlib.h>

#include "calls.h"

/* A struct of the host with bytes behind it that are the host's own. */
#define GUARDED(type)            \
    struct {                     \
        type value;              \
        unsigned char guard[64]; \
    }
#define FILL(guarded)                                         \
    do {                                                      \
        memset(&(guarded), 0, sizeof(guarded).value);         \
        memset((guarded).guard, 0xA5, sizeof(guarded).guard); \
        (guarded).value.struct_size = sizeof(guarded).value;  \
    } while (0)
#define REQUIRE_GUARD(guarded) REQUIRE(is_guard((guarded).guard, sizeof(guarded).guard))

static int is_guard(const unsigned char* bytes, size_t n) {
    size_t i;
    for (i = 0; i < n; ++i)
        if (bytes[i] != 0xA5) return 0;
    return 1;
}

static int use_everything(const char* model) {
    static const int32_t prompt[] = {1, 2, 3, 4, 5};
    GUARDED(inlay_workers_options) workers_options;
    GUARDED(inlay_engine_options) engine_options;
    GUARDED(inlay_cache_options) cache_options;
    GUARDED(inlay_session_options) session_options;
    GUARDED(inlay_generation_options) generation;
    GUARDED(inlay_engine_info) info;
    GUARDED(inlay_cache_stats) cache_stats;
    GUARDED(inlay_session_stats) session_stats;
    GUARDED(inlay_chunk) chunk;
    inlay_workers* workers = NULL;
    inlay_engine* engine = NULL;
    inlay_cache* cache = NULL;
    inlay_session* session = NULL;

    FILL(workers_options);
    REQUIRE(inlay_workers_options_init(&workers_options.value, sizeof workers_options.value) == INLAY_OK);
    REQUIRE_GUARD(workers_options);
    REQUIRE(inlay_workers_create(&workers_options.value, &workers, NULL) == INLAY_OK);
    inlay_workers_release(workers);

    FILL(engine_options);
    FILL(cache_options);
    FILL(session_options);
    FILL(generation);
    REQUIRE(inlay_engine_options_init(&engine_options.value, sizeof engine_options.value) == INLAY_OK);
    REQUIRE(inlay_cache_options_init(&cache_options.value, sizeof cache_options.value) == INLAY_OK);
    REQUIRE(inlay_session_options_init(&session_options.value, sizeof session_options.value) == INLAY_OK);
    REQUIRE(inlay_generation_options_init(&generation.value, sizeof generation.value) == INLAY_OK);
    REQUIRE_GUARD(engine_options);
    REQUIRE_GUARD(cache_options);
    REQUIRE_GUARD(session_options);
    REQUIRE_GUARD(generation);
    REQUIRE(engine_options.value.struct_size == sizeof engine_options.value);
    REQUIRE(generation.value.struct_size == sizeof generation.value);

    /* Bytes behind an option struct are not the library's to read: they are not zero here. */
    REQUIRE(inlay_engine_open(model, SIZE_MAX, &engine_options.value, &engine, NULL) == INLAY_OK);
    REQUIRE(inlay_cache_create(engine, &cache_options.value, &cache, NULL) == INLAY_OK);
    REQUIRE(inlay_session_create(cache, &session_options.value, &session, NULL) == INLAY_OK);
    REQUIRE(inlay_session_set_generation(session, &generation.value, NULL) == INLAY_OK);
    REQUIRE(inlay_session_append_tokens(session, prompt, 5, NULL) == INLAY_OK);
    FILL(chunk);
    REQUIRE(inlay_session_next(session, &chunk.value, NULL) == INLAY_OK);
    REQUIRE_GUARD(chunk);
    REQUIRE(chunk.value.n_tokens == 1);

    FILL(info);
    FILL(cache_stats);
    FILL(session_stats);
    REQUIRE(inlay_engine_get_info(engine, &info.value, NULL) == INLAY_OK);
    REQUIRE(inlay_cache_get_stats(cache, &cache_stats.value, NULL) == INLAY_OK);
    REQUIRE(inlay_session_get_stats(session, &session_stats.value, NULL) == INLAY_OK);
    REQUIRE_GUARD(info);
    REQUIRE_GUARD(cache_stats);
    REQUIRE_GUARD(session_stats);
    REQUIRE(info.value.n_vocabulary > 0 && info.value.n_layers > 0);
    REQUIRE(cache_stats.value.block_tokens == 16 && cache_stats.value.n_used_blocks > 0);
    REQUIRE(session_stats.value.n_prompt_tokens == 5 && session_stats.value.n_generated_tokens == 1);

    inlay_session_release(session);
    inlay_cache_release(cache);
    inlay_engine_release(engine);
    return 0;
}

#ifdef LATER_FIELD
static int ask_for_later_fields(const char* model, int32_t expected) {
    inlay_workers_options workers_options;
    inlay_engine_options engine_options;
    inlay_cache_options cache_options;
    inlay_generation_options generation;
    inlay_workers* workers = NULL;
    inlay_engine* engine = NULL;
    inlay_cache* cache = NULL;
    inlay_session* session = NULL;

    memset(&workers_options, 0, sizeof workers_options);
    memset(&engine_options, 0, sizeof engine_options);
    memset(&cache_options, 0, sizeof cache_options);
    memset(&generation, 0, sizeof generation);
    workers_options.struct_size = sizeof workers_options;
    engine_options.struct_size = sizeof engine_options;
    cache_options.struct_size = sizeof cache_options;
    generation.struct_size = sizeof generation;
    workers_options.later_field = 1;
    engine_options.later_field = 1;
    cache_options.later_field = UINT64_C(1) << 63;
    generation.later_field = 1;

    REQUIRE(inlay_workers_create(&workers_options, &workers, NULL) == expected);
    inlay_workers_release(workers);
    REQUIRE(inlay_engine_open(model, SIZE_MAX, &engine_options, &engine, NULL) == expected);
    if (engine == NULL) REQUIRE(inlay_engine_open(model, SIZE_MAX, NULL, &engine, NULL) == INLAY_OK);
    REQUIRE(inlay_cache_create(engine, &cache_options, &cache, NULL) == expected);
    if (cache == NULL) REQUIRE(inlay_cache_create(engine, NULL, &cache, NULL) == INLAY_OK);
    REQUIRE(inlay_session_create(cache, NULL, &session, NULL) == INLAY_OK);
    REQUIRE(inlay_session_set_generation(session, &generation, NULL) == expected);
    inlay_session_release(session);
    inlay_cache_release(cache);
    inlay_engine_release(engine);
    return 0;
}
#endif

int main(int argc, char** argv) {
#define ENTRY(name) inlay_##name,
    const struct calls inlay = {FOR_EACH_CALL(ENTRY)};
    int32_t tokens[GENERATED_TOKENS];
    REQUIRE(argc == 2 || argc == 3);
    if (fail_to_open(&inlay) || generate(&inlay, argv[1], tokens) || use_everything(argv[1])) return 1;
#ifdef LATER_FIELD
    REQUIRE(argc == 3);
    if (ask_for_later_fields(argv[1], atoi(argv[2]))) return 1;
#endif
    puts("ok");
    return 0;
}
