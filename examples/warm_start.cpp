// A program that starts with its system prompt warm: the prompt is computed once, pinned, and kept in a file of the
// program's own, from which later starts have it. Without the file, or with one that does not fit, as of another model
// or an older prompt, the prompt is computed and the file is written anew.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <inlay/inlay.hpp>
#include <iostream>
#include <iterator>

using Tokens = std::vector<std::int32_t>;

// Whether the cache holds the prompt's whole blocks, but for its last token's, from the file.
bool load(const inlay::Cache& cache, const std::string& path, const Tokens& prompt) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return false;
    const std::vector<unsigned char> saved{std::istreambuf_iterator<char>(file), {}};
    inlay::CacheLoadResult loaded;
    try {
        loaded = cache.load(saved, INLAY_LOAD_TRUSTED);
    } catch (const inlay::Error& error) {
        std::cerr << path << ": " << error.what() << "; it is written anew\n";
        return false;
    }
    std::uint64_t n_held = 0;
    const std::uint64_t pin = cache.pin(prompt, 0, &n_held);
    for (std::uint64_t i = 0; i < loaded.n_pins; ++i) cache.unpin(loaded.first_pin + i);
    const bool is_whole = n_held == prompt.size() / cache.stats().block_tokens * cache.stats().block_tokens;
    if (!is_whole) cache.unpin(pin);
    return is_whole;
}

void compute(const inlay::Engine& engine, const inlay::Cache& cache, const Tokens& prompt) {
    inlay::Session session(cache);
    const std::size_t n_step = engine.info().max_step_tokens;
    for (std::size_t start = 0; start < prompt.size(); start += n_step) {
        const std::size_t n = std::min(n_step, prompt.size() - start);
        session.forward(prompt.data() + start, n, n);
    }
    cache.pin(prompt);
}

// Under another name first, so that a program that is killed meanwhile leaves no half of a file.
void save(const inlay::Cache& cache, const std::string& path) {
    const std::string partial = path + ".partial";
    {
        std::ofstream file(partial, std::ios::binary);
        cache.save([&](const void* bytes, std::size_t size) {
            return bool(file.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size)));
        });
        if (!file.flush()) throw inlay::Error(INLAY_E_IO, "the file could not be written");
    }
    std::filesystem::rename(partial, path);
}

int main(int argc, char** argv) try {
    if (argc != 5) {
        std::cerr << "usage: warm_start MODEL.gguf FILE SYSTEM_PROMPT QUESTION\n";
        return 2;
    }
    const inlay::Engine engine(argv[1]);
    const inlay::Cache cache(engine);
    const Tokens prompt = engine.tokenize(argv[3], INLAY_TEXT_ADD_SPECIAL);
    const bool is_warm = load(cache, argv[2], prompt);
    if (!is_warm) {
        compute(engine, cache, prompt);
        save(cache, argv[2]);
    }

    inlay::Session session(cache);
    session.append(prompt.data(), prompt.size());
    session.append(argv[4], 0);
    inlay::GenerationOptions options;
    options.max_new_tokens = 32;
    for (const std::string_view text : session.generate(options)) std::cout << text << std::flush;
    const inlay::SessionStats stats = session.stats();
    std::cout << "\n---\n"
              << (is_warm ? "warm" : "cold") << ": " << stats.n_prompt_tokens << " tokens before the answer, "
              << stats.n_reused_tokens << " of them found in the cache\n";
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
