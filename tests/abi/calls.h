/*
 * The functions that the tests of the ABI call, as a table: filled from a library that is opened at run time, or from
 * the one that is linked. And one whole use of the library, from model file to tokens, through such a table.
 */
#ifndef INLAY_TESTS_ABI_CALLS_H
#define INLAY_TESTS_ABI_CALLS_H

#include <inlay/inlay.h>
#include <stdio.h>
#include <string.h>

#define FOR_EACH_CALL(use)                                                                                  \
    use(version) use(check_abi) use(error_code) use(error_message) use(error_release) use(engine_open)      \
        use(engine_release) use(engine_get_info) use(tokenize) use(cache_create) use(cache_release)         \
            use(session_create) use(session_release) use(session_append_tokens) use(session_set_generation) \
                use(session_next)

struct calls {
#define MEMBER(name) __typeof__(&inlay_##name) name;
    FOR_EACH_CALL(MEMBER)
#undef MEMBER
};

enum { GENERATED_TOKENS = 8 };

#define REQUIRE(condition)                                                          \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            return 1;                                                               \
        }                                                                           \
    } while (0)

/* Opens the model, generates GENERATED_TOKENS tokens greedily into `tokens`, closes all. 0 when all went well. */
static int generate(const struct calls* inlay, const char* model, int32_t* tokens) {
    static const int32_t prompt[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
    inlay_engine_options engine_options;
    inlay_generation_options generation;
    inlay_error* error = NULL;
    inlay_engine* engine = NULL;
    inlay_cache* cache = NULL;
    inlay_session* session = NULL;
    int n = 0;

    memset(&engine_options, 0, sizeof engine_options);
    memset(&generation, 0, sizeof generation);
    engine_options.struct_size = sizeof engine_options;
    engine_options.n_threads = 2;
    generation.struct_size = sizeof generation;
    generation.flags = INLAY_GENERATION_IGNORE_END;

    REQUIRE(inlay->check_abi(INLAY_VERSION_MAJOR, INLAY_VERSION_MINOR, NULL) == INLAY_OK);
    if (inlay->engine_open(model, SIZE_MAX, &engine_options, &engine, &error) != INLAY_OK) {
        fprintf(stderr, "%s\n", inlay->error_message(error));
        return 1;
    }
    REQUIRE(inlay->cache_create(engine, NULL, &cache, NULL) == INLAY_OK);
    REQUIRE(inlay->session_create(cache, NULL, &session, NULL) == INLAY_OK);
    REQUIRE(inlay->session_set_generation(session, &generation, NULL) == INLAY_OK);
    REQUIRE(inlay->session_append_tokens(session, prompt, sizeof prompt / sizeof *prompt, NULL) == INLAY_OK);
    while (n < GENERATED_TOKENS) {
        inlay_chunk chunk;
        int32_t status;
        size_t i;
        memset(&chunk, 0, sizeof chunk);
        chunk.struct_size = sizeof chunk;
        status = inlay->session_next(session, &chunk, NULL);
        REQUIRE(status == INLAY_OK || status == INLAY_MORE);
        for (i = 0; i < chunk.n_tokens && n < GENERATED_TOKENS; ++i) tokens[n++] = chunk.tokens[i];
    }
    inlay->engine_release(engine); /* in another order than they were made */
    inlay->cache_release(cache);
    inlay->session_release(session);
    return 0;
}

/* An error on its way through the library: an exception is thrown and caught in there. 0 when all went well. */
static int fail_to_open(const struct calls* inlay) {
    inlay_error* error = NULL;
    inlay_engine* engine = (inlay_engine*)&error;
    REQUIRE(inlay->engine_open("/nonexistent/model.gguf", SIZE_MAX, NULL, &engine, &error) == INLAY_E_IO);
    REQUIRE(engine == NULL);
    REQUIRE(inlay->error_code(error) == INLAY_E_IO);
    REQUIRE(strlen(inlay->error_message(error)) > 10);
    inlay->error_release(error);
    return 0;
}

#endif
