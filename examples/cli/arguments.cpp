#include "arguments.h"

#include <algorithm>

#include "choice.h"
#include "input_file.h"
#include "number_option.h"
#include "progress_bar.h"
#include "token_ids.h"

namespace cli {

CLI::Option* add_name(CLI::App& app, const std::string& option, std::string& target, const std::string& description) {
    const auto store = [option, &target](const CLI::results_t& given) {
        if (given.front().empty()) throw CLI::ValidationError(option, "must not be empty");
        target = given.front();
        return true;
    };
    return app.add_option(option, store, description)->type_name("FILE");
}

CLI::Option* add_input_file(CLI::App& app, std::string& target) {
    return add_name(app, "-f,--file", target, "File of text; -: stdin");
}

CLI::Option* add_context(CLI::App& app, std::uint32_t& n_tokens) {
    return add_number(app, "--ctx", n_tokens, {0, kMostTokens}, "Most tokens of the sequence; 0: the model's context");
}

CLI::Option* add_threads(CLI::App& app, std::uint32_t& n_threads) {
    return add_number(app, "--threads", n_threads, {0, 256},
                      "Compute threads, at most 256; 0: one per available processor");
}

void ModelArguments::add_to(CLI::App& app) {
    add_name(app, "MODEL", path, "Model file (GGUF)")->required();
}

inlay::Engine ModelArguments::open_vocabulary() const {
    inlay::EngineOptions options;
    options.flags = INLAY_ENGINE_VOCABULARY_ONLY;
    return inlay::Engine(path, options);
}

void ComputeArguments::add_to(CLI::App& app) {
    add_threads(app, n_threads);
    add_choice(app, "--compute", compute, kComputeModes, "Activations: 8 bits beside quantised weights, or f32");
    app.add_flag("--map", map_file, "Use the weights where they lie in the file: opens at once, computes slower");
    add_choice(app, "--instructions", instruction_set, kInstructionSets, "Kernels to use; all give the same result")
        ->group("Advanced");
}

inlay::Engine ComputeArguments::open(const ModelArguments& model, const Interrupt& interrupt, bool show_progress,
                                     std::uint32_t max_step_tokens) const {
    inlay::EngineOptions options;
    options.n_threads = n_threads;
    options.compute = compute;
    options.instruction_set = instruction_set;
    options.max_step_tokens = max_step_tokens;
    if (map_file) options.flags |= INLAY_ENGINE_MAP_FILE;
    ProgressBar bar(show_progress);
    return inlay::Engine(model.path, options, [&](std::uint64_t done, std::uint64_t total) {
        interrupt.check("the model was not loaded");
        bar.show(done, total);
        return true;
    });
}

void KvTypeArguments::add_to(CLI::App& app) {
    add_choice(app, "--kv", both, kKvTypes, "Element type of keys and values");
    add_choice(app, "--kv-k", key, kKvTypes, "Of keys, where they are of another one")->default_str("");
    add_choice(app, "--kv-v", value, kKvTypes, "Of values, where they are of another one")->default_str("");
}

std::string KvTypeArguments::name() const {
    const std::string keys = choice_name(kKvTypes, key_type());
    return key_type() == value_type() ? keys : keys + "/" + choice_name(kKvTypes, value_type());
}

void CacheArguments::add_to(CLI::App& app) {
    kv.add_to(app);
    add_number(app, "--cache-mb", megabytes, {0, 1'000'000'000},
               "Budget of keys and values in MB, 10^6 bytes; 0: what is needed");
}

inlay::Cache CacheArguments::create(const inlay::Engine& engine, std::uint64_t n_tokens, std::uint32_t flags,
                                    std::uint64_t n_sequences) const {
    inlay::CacheOptions options;
    options.flags = flags;
    options.key_type = kv.key_type();
    options.value_type = kv.value_type();
    options.bytes =
        megabytes ? megabytes * 1'000'000 : n_sequences * inlay::Cache::bytes_for(engine, n_tokens, options);
    return inlay::Cache(engine, options);
}

std::vector<std::int32_t> Prompt::tokens(const inlay::Engine& engine) const {
    std::vector<std::int32_t> tokens = ids ? *ids : engine.tokenize(text, text_flags);
    if (tokens.empty()) throw inlay::Error(INLAY_E_INVALID_ARGUMENT, "the prompt has no tokens");
    return tokens;
}

void PromptArguments::add_to(CLI::App& app, bool is_optional) {
    CLI::Option_group* sources = app.add_option_group("Prompt");
    sources->add_option("-p,--prompt", text, "Text");
    add_input_file(*sources, file);
    add_name(*sources, "--ids", ids, "Token ids, as they are: " + std::string(kTokenIdsFormat))->type_name("LIST");
    sources->require_option(is_optional ? 0 : 1, 1);
    sources_ = sources;
    app.add_flag("--special", special, "Text that spells a special token becomes it");
}

bool PromptArguments::given() const {
    const std::vector<const CLI::Option*> options = sources_->get_options();
    return std::any_of(options.begin(), options.end(), [](const CLI::Option* option) { return option->count() > 0; });
}

bool PromptArguments::reads_stdin() const {
    return file == "-" || ids == "@-";
}

Prompt PromptArguments::read() const {
    Prompt prompt;
    if (!ids.empty())
        prompt.ids = parse_ids(ids);
    else
        prompt.text = file.empty() ? text : read_file(file);
    prompt.text_flags = INLAY_TEXT_ADD_SPECIAL | (special ? INLAY_TEXT_PARSE_SPECIAL : 0u);
    return prompt;
}

}  // namespace cli
