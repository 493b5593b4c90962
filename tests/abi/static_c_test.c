/*
 * A C program that links libinlay.a with nothing but the C library and -lm. Prints the tokens.
 * Usage: static_c_test MODEL
 */
#include "calls.h"

int main(int argc, char** argv) {
#define ENTRY(name) inlay_##name,
    const struct calls inlay = {FOR_EACH_CALL(ENTRY)};
    int32_t tokens[GENERATED_TOKENS];
    int i;
    REQUIRE(argc == 2);
    if (fail_to_open(&inlay) || generate(&inlay, argv[1], tokens)) return 1;
    for (i = 0; i < GENERATED_TOKENS; ++i) printf("%d ", (int)tokens[i]);
    puts("ok");
    return 0;
}
