#include <inlay/inlay.h>
#include <stdio.h>

static int32_t print(void* user, const inlay_chunk* chunk) {
    (void)user;
    fwrite(chunk->text, 1, chunk->text_size, stdout);
    return fflush(stdout);
}

int main(int argc, char** argv) {
    inlay_engine* engine = NULL;
    inlay_cache* cache = NULL;
    inlay_session* session = NULL;
    inlay_error* error = NULL;
    inlay_generation_options options = {.struct_size = sizeof options, .max_new_tokens = 64};
    if (argc != 3) return fputs("usage: hello MODEL.gguf PROMPT\n", stderr), 2;

    if (inlay_engine_open(argv[1], SIZE_MAX, NULL, &engine, &error) >= 0 &&
        inlay_cache_create(engine, NULL, &cache, &error) >= 0 &&
        inlay_session_create(cache, NULL, &session, &error) >= 0 &&
        inlay_session_set_generation(session, &options, &error) >= 0 &&
        inlay_session_append_text(session, argv[2], SIZE_MAX, INLAY_TEXT_ADD_SPECIAL, &error) >= 0)
        inlay_session_run(session, print, NULL, NULL, &error);

    int failed = error != NULL;
    fprintf(failed ? stderr : stdout, "%s\n", inlay_error_message(error));
    inlay_error_release(error);
    inlay_session_release(session);
    inlay_cache_release(cache);
    inlay_engine_release(engine);
    return failed;
}
