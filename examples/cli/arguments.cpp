#include "arguments.h"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>

#include "choice.h"
#include "progress_bar.h"

namespace cli {

void ModelArguments::add_to(CLI::App& app) {
    app.add_option("MODEL", path, "Model file (GGUF)")->required();
    app.add_flag("--json", json, "Print one JSON object");
}

inlay::Engine ModelArguments::open_vocabulary() const {
    inlay::EngineOptions options;
    options.flags = INLAY_ENGINE_VOCABULARY_ONLY;
    return inlay::Engine(path, options);
}

void ComputeArguments::add_to(CLI::App& app) {
    app.add_option("--threads", n_threads, "Compute threads; 0: one per available processor")->capture_default_str();
    add_choice(app, "--compute", compute, kComputeModes, "Activations: 8 bits beside quantised weights, or f32");
    add_choice(app, "--instructions", instruction_set, kInstructionSets, "Kernels to use; all give the same result")
        ->group("Advanced");
}

inlay::Engine ComputeArguments::open(const ModelArguments& model, const Interrupt& interrupt,
                                     std::uint32_t max_step_tokens) const {
    inlay::EngineOptions options;
    options.n_threads = n_threads;
    options.compute = compute;
    options.instruction_set = instruction_set;
    options.max_step_tokens = max_step_tokens;
    ProgressBar bar;
    return inlay::Engine(model.path, options, [&](std::uint64_t done, std::uint64_t total) {
        bar.show(done, total);
        return !interrupt.requested();
    });
}

void CacheArguments::add_to(CLI::App& app) {
    add_choice(app, "--kv", kv_type, kKvTypes, "Element type of keys and values");
}

inlay::Cache CacheArguments::create(const inlay::Engine& engine, std::uint64_t n_tokens, std::uint32_t flags) const {
    inlay::CacheOptions options;
    options.flags = flags;
    options.key_type = kv_type;
    options.value_type = kv_type;
    options.bytes = inlay::Cache::bytes_for(engine, n_tokens, options);
    return inlay::Cache(engine, options);
}

void PromptArguments::add_to(CLI::App& app) {
    CLI::Option_group* sources = app.add_option_group("Prompt", "Exactly one of:");
    sources->add_option("-p,--prompt", text, "Text");
    sources->add_option("-f,--file", file, "File of text; -: stdin");
    sources->add_option("--ids", ids, "Token ids, as they are: LIST with commas or spaces, or @FILE");
    sources->require_option(1);
    app.add_flag("--special", special, "Text that spells a special token becomes it");
}

std::vector<std::int32_t> PromptArguments::tokens(const inlay::Engine& engine) const {
    if (!ids.empty()) return parse_ids(ids);
    const std::uint32_t flags = INLAY_TEXT_ADD_SPECIAL | (special ? INLAY_TEXT_PARSE_SPECIAL : 0u);
    return engine.tokenize(file.empty() ? text : read_file(file), flags);
}

std::string read_file(const std::string& path) {
    const auto fail = [&] { throw inlay::Error(INLAY_E_IO, (path + ": " + std::strerror(errno)).c_str()); };
    struct Close {
        void operator()(std::FILE* file) const {
            if (file != stdin) std::fclose(file);
        }
    };
    const std::unique_ptr<std::FILE, Close> file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
    if (!file) fail();
    std::string bytes;
    char part[1 << 16];
    while (const std::size_t n = std::fread(part, 1, sizeof part, file.get())) bytes.append(part, n);
    if (std::ferror(file.get())) fail();
    return bytes;
}

std::vector<std::int32_t> parse_ids(const std::string& list) {
    const bool in_file = !list.empty() && list.front() == '@';
    const std::string source = in_file ? read_file(list.substr(1)) : list;
    std::vector<std::int32_t> ids;
    for (const char *at = source.data(), *const end = at + source.size(); at != end;) {
        if (std::strchr(", \t\r\n[]", *at)) {
            ++at;
            continue;
        }
        std::int32_t id = 0;
        const std::from_chars_result result = std::from_chars(at, end, id);
        if (result.ec != std::errc{}) throw CLI::ValidationError("--ids", "not a list of token ids: " + list);
        ids.push_back(id);
        at = result.ptr;
    }
    return ids;
}

}  // namespace cli
