// A C++ program with its own operator new, exceptions and inline functions of the C++ library, beside libinlay.a, which
// has its own of each: both work, and neither uses the other's. Usage: static_cpp_test MODEL
#include <cstdlib>
#include <map>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "calls.h"

static long n_news = 0;

void* operator new(std::size_t size) {
    ++n_news;
    if (void* memory = std::malloc(size)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}

static std::string caught_sentence(int n) {
    try {
        std::map<std::string, std::vector<std::string>> words;
        for (int i = 0; i < n; ++i) words[std::to_string(i)].assign(3, std::string(50, 'x'));
        throw std::runtime_error("host " + words.rbegin()->first);
    } catch (const std::exception& exception) {
        std::ostringstream sentence;
        sentence << "caught: " << exception.what();
        return sentence.str();
    }
}

int main(int argc, char** argv) {
#define ENTRY(name) inlay_##name,
    const calls inlay = {FOR_EACH_CALL(ENTRY)};
    std::int32_t tokens[GENERATED_TOKENS];
    REQUIRE(argc == 2);

    REQUIRE(caught_sentence(20) == "caught: host 9");
    const long before = n_news;
    REQUIRE(before > 0);
    if (fail_to_open(&inlay) || generate(&inlay, argv[1], tokens)) return 1;
    REQUIRE(n_news == before);  // the library allocated a lot, and nothing through the host's operator
    REQUIRE(caught_sentence(20) == "caught: host 9");
    REQUIRE(n_news > before);
    std::puts("ok");
    return 0;
}
