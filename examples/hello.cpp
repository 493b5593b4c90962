#include <inlay/inlay.hpp>
#include <iostream>

int main(int argc, char** argv) try {
    if (argc != 3) return 2;
    inlay::Engine engine(argv[1]);
    inlay::Cache cache(engine);
    inlay::Session session(cache);
    session.append(argv[2], INLAY_TEXT_ADD_SPECIAL);
    inlay::GenerationOptions options;
    options.max_new_tokens = 64;
    for (std::string_view text : session.generate(options)) std::cout << text << std::flush;
    std::cout << '\n';
} catch (const inlay::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
