/*
 * What a process takes against what inlay_estimate_memory tells: peak_memory_test FOLDER MODEL
 *
 * A process of its own for each model, for the peak of resident memory only ever grows. It opens the model, fills a
 * cache of the estimated size with one prompt, generates to the end of the context, and only then asks for the
 * estimate, so that what that takes is not measured. INLAY_MODELS names another folder. Exit status 77: the model was
 * not fetched.
 */
#include <inlay/inlay.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77, THREADS = 2, CONTEXT_TOKENS = 2048, PROMPT_TOKENS = 2032, PERCENT = 5 };

static inlay_error* error;

#define REQUIRE(condition)                                                                                          \
    do {                                                                                                            \
        if (!(condition)) {                                                                                         \
            fprintf(stderr, "%s:%d: not so: %s. %s\n", __FILE__, __LINE__, #condition, inlay_error_message(error)); \
            exit(1);                                                                                                \
        }                                                                                                           \
    } while (0)

struct taken {
    uint64_t weights, scratch, blocks, process;
};

/* The peak of the process's resident memory. /proc counts kB. */
static uint64_t peak_bytes(void) {
    static const char name[] = "VmHWM:";
    char line[256];
    uint64_t bytes = 0;
    FILE* status = fopen("/proc/self/status", "r");
    REQUIRE(status != NULL);
    while (fgets(line, sizeof line, status))
        if (strncmp(line, name, sizeof name - 1) == 0) bytes = strtoull(line + sizeof name - 1, NULL, 10) * 1024;
    fclose(status);
    REQUIRE(bytes != 0);
    return bytes;
}

static void fill_context(inlay_session* session) {
    static int32_t prompt[PROMPT_TOKENS];
    const inlay_generation_options options = {.struct_size = sizeof options, .flags = INLAY_GENERATION_IGNORE_END};
    inlay_chunk last = {.struct_size = sizeof last};
    uint64_t n_tokens = 0;
    for (int i = 0; i < PROMPT_TOKENS; ++i) prompt[i] = (i * 7919 + 11) % 40000;
    REQUIRE(inlay_session_set_generation(session, &options, &error) == INLAY_OK);
    REQUIRE(inlay_session_append_tokens(session, prompt, PROMPT_TOKENS, &error) == INLAY_OK);
    REQUIRE(inlay_session_run(session, NULL, NULL, &last, &error) == INLAY_END);
    REQUIRE(inlay_session_length(session, &n_tokens, &error) == INLAY_OK);
    REQUIRE(n_tokens == CONTEXT_TOKENS);
}

static struct taken use(const char* path) {
    const uint64_t before = peak_bytes();
    const inlay_engine_options engine_options = {.struct_size = sizeof engine_options, .n_threads = THREADS};
    const inlay_session_options session_options = {.struct_size = sizeof session_options,
                                                   .context_tokens = CONTEXT_TOKENS};
    inlay_cache_options cache_options = {.struct_size = sizeof cache_options};
    inlay_engine_info info = {.struct_size = sizeof info};
    inlay_cache_stats stats = {.struct_size = sizeof stats};
    inlay_engine* engine = NULL;
    inlay_cache* cache = NULL;
    inlay_session* session = NULL;

    REQUIRE(inlay_engine_open(path, SIZE_MAX, &engine_options, &engine, &error) == INLAY_OK);
    REQUIRE(inlay_cache_bytes_for(engine, NULL, CONTEXT_TOKENS, &cache_options.bytes, &error) == INLAY_OK);
    REQUIRE(inlay_cache_create(engine, &cache_options, &cache, &error) == INLAY_OK);
    REQUIRE(inlay_session_create(cache, &session_options, &session, &error) == INLAY_OK);
    fill_context(session);
    const uint64_t after = peak_bytes();
    REQUIRE(inlay_engine_get_info(engine, &info, &error) == INLAY_OK);
    REQUIRE(inlay_cache_get_stats(cache, &stats, &error) == INLAY_OK);
    inlay_session_release(session);
    inlay_cache_release(cache);
    inlay_engine_release(engine);

    /* Blocks that left a window keep their memory: they can be found again. */
    const uint64_t n_blocks = stats.n_used_blocks + stats.n_cached_blocks;
    return (struct taken){info.weight_bytes, info.scratch_bytes, n_blocks * stats.block_bytes, after - before};
}

/* 0 when both are within PERCENT of each other. */
static int compare(const char* what, uint64_t estimated, uint64_t taken) {
    const uint64_t difference = estimated > taken ? estimated - taken : taken - estimated;
    const int failed = difference * 100 > taken * PERCENT;
    printf("%-22s estimated %9.3f MB, taken %9.3f MB%s\n", what, (double)estimated / 1e6, (double)taken / 1e6,
           failed ? ": too far apart" : "");
    return failed;
}

int main(int argc, char** argv) {
    const inlay_estimate_options options = {
        .struct_size = sizeof options, .context_tokens = CONTEXT_TOKENS, .n_threads = THREADS};
    inlay_estimate estimate = {.struct_size = sizeof estimate};
    const char* folder = getenv("INLAY_MODELS");
    char path[4096];
    FILE* file;
    REQUIRE(argc == 3);
    snprintf(path, sizeof path, "%s/%s", folder && *folder ? folder : argv[1], argv[2]);
    file = fopen(path, "rb");
    if (!file) {
        printf("skipped: %s was not fetched\n", argv[2]);
        return SKIPPED;
    }
    fclose(file);

    const struct taken taken = use(path);
    REQUIRE(inlay_estimate_memory(path, SIZE_MAX, &options, &estimate, &error) == INLAY_OK);
    REQUIRE(estimate.total_bytes ==
            estimate.weight_bytes + estimate.kv_bytes + estimate.scratch_bytes + estimate.tokenizer_bytes);
    return compare("weights", estimate.weight_bytes, taken.weights) |
           compare("intermediate results", estimate.scratch_bytes, taken.scratch) |
           compare("keys and values", estimate.kv_bytes, taken.blocks) |
           compare("growth of the process", estimate.total_bytes, taken.process);
}
