// What a program that embeds libllama waits for: llama_probe MODEL THREADS prints one JSON object, medians of five.
//
// Loading a file that is in the system's file cache, what is resident then, the first token after a prompt of 20 random
// tokens, and after 1,024 that another sequence of the context has computed and 20 more.
#include <llama.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr int kRounds = 5;
constexpr int kShared = 1024;
constexpr int kNew = 20;

template <typename Action>
double milliseconds(const Action& action) {
    const auto start = std::chrono::steady_clock::now();
    action();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

unsigned long long resident_bytes() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.rfind("VmRSS:", 0) == 0) return std::stoull(line.substr(6)) * 1024;
    return 0;
}

llama_model* load(const char* path) {
    llama_model* model = llama_model_load_from_file(path, llama_model_default_params());
    if (!model) {
        std::fprintf(stderr, "llama.cpp does not load %s\n", path);
        std::exit(1);
    }
    return model;
}

llama_context* create_context(llama_model* model, int n_threads) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = 2048;
    params.n_batch = 2048;
    params.n_ubatch = 512;
    params.n_seq_max = 2;
    params.n_threads = params.n_threads_batch = n_threads;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    params.kv_unified = params.swa_full = true;  // sequences may share what one computed
    return llama_init_from_model(model, params);
}

// Random tokens of a sequence from `position` on, and the logits after the last.
void compute(llama_context* context, int sequence, int position, int n_tokens) {
    static std::mt19937 random;
    const llama_vocab* vocabulary = llama_model_get_vocab(llama_get_model(context));
    std::uniform_int_distribution<llama_token> any_token(0, llama_vocab_n_tokens(vocabulary) - 1);
    llama_batch batch = llama_batch_init(n_tokens, 0, 1);
    batch.n_tokens = n_tokens;
    for (int i = 0; i < n_tokens; ++i) {
        batch.token[i] = any_token(random);
        batch.pos[i] = position + i;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = sequence;
        batch.logits[i] = i == n_tokens - 1;
    }
    if (llama_decode(context, batch) != 0 || !llama_get_logits_ith(context, -1)) std::exit(1);
    llama_batch_free(batch);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
    llama_backend_init();
    llama_model* model = nullptr;
    const double first_load = milliseconds([&] { model = load(argv[1]); });
    const unsigned long long loaded_resident_bytes = resident_bytes();
    std::vector<double> loading, first, shared;
    for (int i = 0; i < kRounds; ++i) {
        llama_model_free(model);
        loading.push_back(milliseconds([&] { model = load(argv[1]); }));
    }
    llama_context* context = create_context(model, std::atoi(argv[2]));
    llama_memory_t memory = llama_get_memory(context);
    for (int i = 0; i <= kRounds; ++i) {  // the first one warms up
        llama_memory_clear(memory, false);
        const double alone = milliseconds([&] { compute(context, 0, 0, kNew); });
        llama_memory_clear(memory, false);
        compute(context, 0, 0, kShared);
        const double joining = milliseconds([&] {
            llama_memory_seq_cp(memory, 0, 1, 0, kShared);
            compute(context, 1, kShared, kNew);
        });
        if (i == 0) continue;
        first.push_back(alone);
        shared.push_back(joining);
    }
    std::printf(
        "{\"load_ms\": %.3f, \"reload_ms\": %.3f, \"loaded_resident_bytes\": %llu, \"first_token_ms\": %.3f, "
        "\"shared_first_token_ms\": %.3f}\n",
        first_load, median(loading), loaded_resident_bytes, median(first), median(shared));
    llama_free(context);
    llama_model_free(model);
}
