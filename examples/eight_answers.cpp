// Eight answers to one prompt, which is computed and held once: eight forks share its blocks, and each adds its own.
#include <algorithm>
#include <inlay/inlay.hpp>
#include <iostream>

struct Answer {
    inlay::Session session;
    std::string text;
    bool ended = false;
};

void compute(inlay::Session& session, const std::vector<std::int32_t>& tokens, std::size_t n_step) {
    for (std::size_t start = 0; start < tokens.size(); start += n_step) {
        const std::size_t n = std::min(n_step, tokens.size() - start);
        session.forward(tokens.data() + start, n, n - 1);
    }
}

// Another token for each answer that has not ended, in one step. Returns whether there was any.
bool step(std::vector<Answer>& answers) {
    std::vector<Answer*> running;
    std::vector<inlay::Session*> sessions;
    for (Answer& answer : answers) {
        if (answer.ended) continue;
        running.push_back(&answer);
        sessions.push_back(&answer.session);
    }
    if (running.empty()) return false;
    const std::vector<inlay::StepResult> results = inlay::step(sessions);
    for (std::size_t i = 0; i < results.size(); ++i) {
        if (results[i].status < 0) throw inlay::Error(results[i].status, results[i].error.c_str());
        running[i]->text += results[i].chunk.text();
        running[i]->ended = results[i].chunk.ended();
    }
    return true;
}

void print_memory(const inlay::Engine& engine, const inlay::Cache& cache, const inlay::Session& prompt,
                  const std::vector<Answer>& answers) {
    const inlay::CacheStats stats = cache.stats();
    std::uint64_t n_own = 0;
    std::uint64_t n_computed = prompt.stats().n_computed_tokens;
    std::uint64_t separate_bytes = 0;
    for (const Answer& answer : answers) {
        n_own += answer.session.length() - prompt.length();
        n_computed += answer.session.stats().n_computed_tokens;
        separate_bytes += inlay::Cache::bytes_for(engine, answer.session.length());
    }
    std::cout << "tokens: " << prompt.length() << " of the prompt, " << n_own << " of the answers, " << n_computed
              << " computed\n"
              << "blocks: " << stats.n_used_blocks << " held, " << stats.n_shared_blocks << " of them shared\n"
              << "bytes: " << stats.used_bytes << " held; the prompt alone "
              << inlay::Cache::bytes_for(engine, prompt.length()) << ", eight sessions of their own " << separate_bytes
              << '\n';
}

int main(int argc, char** argv) try {
    if (argc != 3) {
        std::cerr << "usage: eight_answers MODEL.gguf PROMPT\n";
        return 2;
    }
    const inlay::Engine engine(argv[1]);
    const inlay::Cache cache(engine);
    inlay::Session prompt(cache);
    compute(prompt, engine.tokenize(argv[2], INLAY_TEXT_ADD_SPECIAL), engine.info().max_step_tokens);

    std::vector<Answer> answers(8);
    inlay::GenerationOptions options;
    options.max_new_tokens = 48;
    options.temperature = 0.8f;
    for (Answer& answer : answers) {
        options.seed += 1;
        answer.session = prompt.fork();
        answer.session.set_generation(options);
    }
    while (step(answers)) {
    }
    for (const Answer& answer : answers) std::cout << "---\n" << answer.text << '\n';
    std::cout << "---\n";
    print_memory(engine, cache, prompt, answers);
} catch (const inlay::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
