#include "engine/opening_log.h"

#include <algorithm>
#include <string>
#include <unordered_set>

#include "base/pages.h"
#include "base/printable.h"
#include "engine/engine.h"

namespace inlay {
namespace {

constexpr const char* kRopeFactors = "rope_freqs.weight";  // a part of the description, read without being a weight

std::string bytes_text(uint64_t bytes) {
    return std::to_string(bytes) + " bytes";
}

std::string architecture_of(const GgufFile& file) {
    return printable(file.string("general.architecture").value_or("a model without a named architecture"), 64);
}

}  // namespace

void OpeningLog::began(const ModelFile& file, const ModelSource& source) const {
    if (!log_.has_sink()) return;
    std::string record = "opening " + source.name_of(0, file.n_parts);
    if (file.n_parts > 1) record += ", the first of " + std::to_string(file.n_parts);
    log_.info(record + ": " + architecture_of(file.head) + ", " + std::to_string(file.head.tensors().size()) +
              " tensors, " + bytes_text(file.bytes->size()));
}

void OpeningLog::ended(const Engine& engine, bool on_system_pages) const {
    if (!log_.has_sink()) return;
    warn_of_vocabulary(engine);
    const auto time = std::chrono::steady_clock::now() - start_;
    const std::string ms = std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(time).count()) + " ms";
    const std::string vocabulary = std::to_string(engine.n_vocabulary()) + " tokens";
    if (!engine.has_weights()) return log_.info("opened the vocabulary of " + vocabulary + " in " + ms);

    warn_of_unused_tensors(engine);
    if (on_system_pages && !system_has_huge_pages())
        log_.warn("the system gives no large pages (transparent_hugepage/enabled): reading weights takes longer");
    log_.info("opened " + std::to_string(engine.spec().layers.size()) + " layers and " + vocabulary + " in " + ms +
              ": weights of " + bytes_text(engine.weight_file_bytes()) + " in " +
              bytes_text(engine.backend().weight_bytes()) + " of memory, " + std::to_string(engine.n_threads()) +
              " threads, " + engine.kernels().name + " kernels");
}

void OpeningLog::warn_of_vocabulary(const Engine& engine) const {
    const Tokenizer& tokenizer = engine.tokenizer();
    if (tokenizer.vocabulary().model == "gpt2" && tokenizer.vocabulary().pre.empty())
        log_.warn(
            "key 'tokenizer.ggml.pre' is missing: texts are cut into words as 'default' is, which may not be how "
            "the model's were");
    if (tokenizer.vocabulary().end_of_generation.empty())
        log_.warn("the vocabulary has no token that ends a text: generation ends at a limit only");
    if (engine.n_vocabulary() > tokenizer.n_tokens())
        log_.warn("the output has " + std::to_string(engine.n_vocabulary()) + " rows for " +
                  std::to_string(tokenizer.n_tokens()) + " tokens: the ids above have no text");
}

void OpeningLog::warn_of_unused_tensors(const Engine& engine) const {
    std::unordered_set<const TensorInfo*> used;
    for (const TensorInfo* tensor : Decoder::tensors_of(engine.spec(), engine.file())) used.insert(tensor);
    const auto is_unused = [&](const TensorInfo& tensor) {
        return !used.contains(&tensor) && tensor.name != kRopeFactors;
    };
    const std::vector<TensorInfo>& tensors = engine.file().tensors();
    const auto first = std::find_if(tensors.begin(), tensors.end(), is_unused);
    if (first == tensors.end()) return;
    const auto n_more = std::count_if(first + 1, tensors.end(), is_unused);
    std::string record = "the model has tensors that are not used: '" + printable(first->name, 96) + "'";
    if (n_more > 0) record += " and " + std::to_string(n_more) + " more";
    log_.warn(record);
}

}  // namespace inlay
