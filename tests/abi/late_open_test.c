/*
 * The library opened late, by a program that does not link it: twice, from two files, which know nothing of each other;
 * closed while threads of the host that called in live on; and the host's malloc is the same as before, throughout.
 * Usage: late_open_test LIBRARY COPY_OF_LIBRARY MODEL
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

#include "calls.h"

static int load(const char* path, int flags, void** handle, struct calls* calls) {
    *handle = dlopen(path, flags);
    if (*handle == NULL) fprintf(stderr, "%s\n", dlerror());
    REQUIRE(*handle != NULL);
#define LOOK_UP(name) *(void**)&calls->name = dlsym(*handle, "inlay_" #name);
    FOR_EACH_CALL(LOOK_UP)
#undef LOOK_UP
#define FOUND(name) REQUIRE(calls->name != NULL);
    FOR_EACH_CALL(FOUND)
#undef FOUND
    return 0;
}

struct caller {
    const struct calls* inlay;
    const char* model;
    pthread_barrier_t *called, *closed;
    int result;
};

/* Calls in, and ends only after the library was closed: its per-thread state is torn down then. */
static void* call_and_outlive(void* argument) {
    struct caller* caller = argument;
    int32_t tokens[GENERATED_TOKENS];
    caller->result = generate(caller->inlay, caller->model, tokens) + fail_to_open(caller->inlay);
    pthread_barrier_wait(caller->called);
    pthread_barrier_wait(caller->closed);
    return NULL;
}

static void* do_nothing(void* argument) {
    free(malloc(1000));
    return argument;
}

int main(int argc, char** argv) {
    void *malloc_before = dlsym(RTLD_DEFAULT, "malloc"), *free_before = dlsym(RTLD_DEFAULT, "free");
    void *kept = malloc(12345), *first, *second;
    size_t usable = malloc_usable_size(kept);
    struct calls one, two;
    int32_t tokens_one[GENERATED_TOKENS], tokens_two[GENERATED_TOKENS];
    enum { CALLERS = 3 };
    pthread_t threads[CALLERS], later;
    struct caller callers[CALLERS];
    pthread_barrier_t called, closed;
    int i;

    REQUIRE(argc == 4);
    if (load(argv[1], RTLD_NOW | RTLD_GLOBAL, &first, &one) || load(argv[2], RTLD_LAZY | RTLD_LOCAL, &second, &two))
        return 1;
    REQUIRE(one.engine_open != two.engine_open);
    if (generate(&one, argv[3], tokens_one) || generate(&two, argv[3], tokens_two)) return 1;
    REQUIRE(memcmp(tokens_one, tokens_two, sizeof tokens_one) == 0);
    if (fail_to_open(&one) || fail_to_open(&two)) return 1;

    /* Nothing of the allocator or of the C++ runtime is to be seen from outside. */
    REQUIRE(dlsym(RTLD_DEFAULT, "malloc") == malloc_before && dlsym(RTLD_DEFAULT, "free") == free_before);
    REQUIRE(dlsym(first, "malloc") == malloc_before);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* their runtimes bring some of these names */
    REQUIRE(dlsym(first, "mi_malloc") == NULL && dlsym(first, "_Znwm") == NULL && dlsym(first, "__cxa_throw") == NULL);
#endif
    REQUIRE(malloc_usable_size(kept) == usable);
    kept = realloc(kept, 54321);
    REQUIRE(kept != NULL);
    free(kept);

    pthread_barrier_init(&called, NULL, CALLERS + 1);
    pthread_barrier_init(&closed, NULL, CALLERS + 1);
    for (i = 0; i < CALLERS; ++i) {
        struct caller caller = {i % 2 ? &two : &one, argv[3], &called, &closed, -1};
        callers[i] = caller;
        REQUIRE(pthread_create(&threads[i], NULL, call_and_outlive, &callers[i]) == 0);
    }
    pthread_barrier_wait(&called);
    REQUIRE(dlclose(first) == 0 && dlclose(second) == 0);
    pthread_barrier_wait(&closed);
    for (i = 0; i < CALLERS; ++i) {
        pthread_join(threads[i], NULL);
        REQUIRE(callers[i].result == 0);
    }
    REQUIRE(pthread_create(&later, NULL, do_nothing, NULL) == 0);
    pthread_join(later, NULL);

    /* And opened again: the same copy, still there. */
    if (load(argv[1], RTLD_NOW, &first, &one) || generate(&one, argv[3], tokens_two)) return 1;
    REQUIRE(memcmp(tokens_one, tokens_two, sizeof tokens_one) == 0);
    puts("ok");
    return 0;
}
