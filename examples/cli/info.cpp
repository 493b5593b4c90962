// inlay info: what a model file says about itself, and what it will take in memory. Loads no weights.
#include <cstdio>
#include <memory>
#include <optional>

#include "arguments.h"
#include "choice.h"
#include "command.h"
#include "report.h"

namespace cli {
namespace {

struct InfoArguments {
    ModelArguments model;
    KvTypeArguments kv;
    std::uint32_t context_tokens = 0;
    std::uint32_t n_threads = 0;
};

// What the library can say about a file. A file that it does not fully support still shows the other part.
struct Description {
    std::optional<inlay::Engine> vocabulary;
    std::optional<inlay::Estimate> estimate;
    std::string vocabulary_error, estimate_error;
};

// A model that the library does not run, or a file with a vocabulary alone.
bool has_no_estimate(const inlay::Engine& vocabulary, const inlay::Error& error) {
    return error.code() == INLAY_E_UNSUPPORTED || (error.code() == INLAY_E_FORMAT && vocabulary.info().n_tensors == 0);
}

Description describe(const InfoArguments& arguments) {
    Description description;
    try {
        description.vocabulary = arguments.model.open_vocabulary();
    } catch (const inlay::Error& error) {
        if (error.code() != INLAY_E_UNSUPPORTED) throw;
        description.vocabulary_error = error.what();
    }
    inlay::EstimateOptions options;
    options.context_tokens = arguments.context_tokens;
    options.key_type = arguments.kv.key_type();
    options.value_type = arguments.kv.value_type();
    options.n_threads = arguments.n_threads;
    try {
        description.estimate = inlay::estimate_memory(arguments.model.path, options);
    } catch (const inlay::Error& error) {
        if (!description.vocabulary || !has_no_estimate(*description.vocabulary, error)) throw;
        description.estimate_error = error.what();
    }
    return description;
}

Json to_json(const Description& description, const InfoArguments& arguments) {
    Json result = {{"model", arguments.model.path}};
    if (description.vocabulary) {
        const inlay::EngineInfo model = description.vocabulary->info();
        result["file_bytes"] = model.file_bytes;  // of all parts of a split model
        result["vocabulary"] = model.n_vocabulary;
        result["tensors"] = model.n_tensors;
        result["parameters"] = model.n_parameters;
        Json& metadata = result["metadata"] = Json::object();
        for (const auto& [key, value] : description.vocabulary->metadata()) metadata[key] = value;
    } else {
        result["vocabulary"] = nullptr;
        result["vocabulary_error"] = description.vocabulary_error;
    }
    if (description.estimate) {
        const inlay::Estimate& estimate = *description.estimate;
        result["estimate"] = {{"context_tokens", estimate.context_tokens},
                              {"kv", arguments.kv.name()},
                              {"weight_bytes", estimate.weight_bytes},
                              {"kv_bytes_per_token", estimate.kv_bytes_per_token},
                              {"kv_bytes", estimate.kv_bytes},
                              {"scratch_bytes", estimate.scratch_bytes},
                              {"tokenizer_bytes", estimate.tokenizer_bytes},
                              {"total_bytes", estimate.total_bytes}};
    } else {
        result["estimate"] = nullptr;
        result["estimate_error"] = description.estimate_error;
    }
    return result;
}

// The same object as indented lines: a name and its value.
void print_lines(const Json& object, const std::string& indent) {
    for (const auto& [key, value] : object.items()) {
        if (value.is_object()) {
            std::printf("%s%s\n", indent.c_str(), key.c_str());
            print_lines(value, indent + "  ");
        } else {
            const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
            std::printf("%s%-*s %s\n", indent.c_str(), static_cast<int>(44 - indent.size()), key.c_str(), text.c_str());
        }
    }
}

int info(const InfoArguments& arguments, bool json) {
    const Json result = to_json(describe(arguments), arguments);
    if (json)
        print_json(result);
    else
        print_lines(result, "");
    return kExitSuccess;
}

}  // namespace

Command add_info(CLI::App& app) {
    CLI::App* command = app.add_subcommand("info", "Show a model's metadata and what it will take in memory");
    const auto arguments = std::make_shared<InfoArguments>();
    arguments->model.add_to(*command);
    add_context(*command, arguments->context_tokens);
    arguments->kv.add_to(*command);
    add_threads(*command, arguments->n_threads);
    return {command, [arguments](bool json) { return info(*arguments, json); }};
}

}  // namespace cli
