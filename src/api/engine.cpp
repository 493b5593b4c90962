#include <string>

#include "api/handles.h"
#include "api/kv_type.h"
#include "api/versioned_struct.h"
#include "engine/estimate.h"

using namespace inlay::api;
using inlay::Engine;
using inlay::EngineOptions;
using inlay::Error;

namespace {

constexpr uint32_t kMaxThreads = 256;
constexpr uint32_t kMaxStepTokens = 4096;
constexpr size_t kMetadataTextBytes = 4096;

const inlay::kernels::Kernels& kernels_for(int32_t instruction_set) {
    namespace kernels = inlay::kernels;
    const kernels::Kernels* chosen = nullptr;
    switch (instruction_set) {
        case INLAY_INSTRUCTIONS_BEST:
            if (const kernels::Kernels* best = kernels::avx512()) return *best;
            if (const kernels::Kernels* good = kernels::avx2()) return *good;
            return kernels::portable();
        case INLAY_INSTRUCTIONS_PORTABLE:
            return kernels::portable();
        case INLAY_INSTRUCTIONS_AVX2:
            chosen = kernels::avx2();
            break;
        case INLAY_INSTRUCTIONS_AVX512:
            chosen = kernels::avx512();
            break;
        default:
            invalid("options->instruction_set is " + std::to_string(instruction_set) +
                    ", which is no INLAY_INSTRUCTIONS_* value");
    }
    if (!chosen) throw Error(INLAY_E_UNSUPPORTED, "options->instruction_set: this processor lacks the instructions");
    return *chosen;
}

int32_t instruction_set_of(const inlay::kernels::Kernels& kernels) {
    if (&kernels == inlay::kernels::avx512()) return INLAY_INSTRUCTIONS_AVX512;
    if (&kernels == inlay::kernels::avx2()) return INLAY_INSTRUCTIONS_AVX2;
    return INLAY_INSTRUCTIONS_PORTABLE;
}

inlay::ComputeMode compute_mode(int32_t compute) {
    if (compute == INLAY_COMPUTE_AUTO) return inlay::ComputeMode::kAuto;
    if (compute == INLAY_COMPUTE_F32) return inlay::ComputeMode::kF32;
    invalid("options->compute is " + std::to_string(compute) + ", which is no INLAY_COMPUTE_* value");
}

void check_at_most(uint32_t value, uint32_t limit, const char* name) {
    if (value > limit) invalid(std::string(name) + " is " + std::to_string(value) + ", above " + std::to_string(limit));
}

uint32_t step_tokens(uint32_t wanted) {
    check_at_most(wanted, kMaxStepTokens, "options->max_step_tokens");
    return wanted != 0 ? wanted : EngineOptions::kDefaultStepTokens;
}

EngineOptions engine_options(const inlay_engine_options& options) {
    check_flags(options.flags, INLAY_ENGINE_VOCABULARY_ONLY, "options->flags");
    check_at_most(options.n_threads, kMaxThreads, "options->n_threads");
    EngineOptions ours;
    ours.vocabulary_only = (options.flags & INLAY_ENGINE_VOCABULARY_ONLY) != 0;
    ours.n_threads = options.n_threads;
    ours.compute = compute_mode(options.compute);
    ours.kernels = &kernels_for(options.instruction_set);
    ours.max_step_tokens = step_tokens(options.max_step_tokens);
    if (options.progress)
        ours.progress = [progress = options.progress, user = options.progress_user](uint64_t done, uint64_t total) {
            return progress(user, done, total) == 0;
        };
    return ours;
}

std::string path_argument(const char* path, size_t path_size) {
    const std::string_view text = text_argument(path, path_size, "path");
    if (text.empty()) invalid("path is empty");
    if (text.find('\0') != std::string_view::npos) invalid("path contains a NUL");
    return std::string(text);
}

void fill_model_info(const Engine& engine, inlay_engine_info& info) {
    const inlay::ModelSpec& spec = engine.spec();
    info.n_layers = static_cast<uint32_t>(spec.layers.size());
    info.n_embedding = spec.n_embedding;
    info.n_heads = spec.n_heads;
    info.n_kv_heads = spec.n_kv_heads;
    info.head_dim = spec.head_dim;
    info.context_tokens = spec.context_tokens;
    info.n_threads = engine.n_threads();
    info.compute = engine.compute() == inlay::ComputeMode::kF32 ? INLAY_COMPUTE_F32 : INLAY_COMPUTE_AUTO;
    info.instruction_set = instruction_set_of(engine.kernels());
    info.max_step_tokens = engine.max_step_tokens();
    info.weight_bytes = engine.backend().weight_bytes();
    info.scratch_bytes = engine.backend().scratch_bytes();
    info.n_steps = engine.scheduler().n_steps();
}

// One text of a metadata entry by the rule for buffers.
template <typename TextOf>
int32_t metadata_text(const inlay_engine* engine, size_t index, char* buffer, size_t capacity, size_t* needed,
                      inlay_error** error, const TextOf& text_of) {
    if (needed) *needed = 0;
    return guarded(error, [&] {
        require(needed, "needed");
        const auto shared = require(engine, "engine").share("engine");
        const inlay::GgufMetadata& metadata = shared->file().metadata();
        if (index >= metadata.size())
            invalid("index is " + std::to_string(index) + " of " + std::to_string(metadata.size()) + " entries");
        const std::string text(text_of(metadata, index));
        return write_buffer(error, text.data(), text.size(), buffer, capacity, *needed);
    });
}

}  // namespace

int32_t inlay_engine_options_init(inlay_engine_options* options, uint32_t struct_size) {
    return init_struct(options, struct_size);
}

int32_t inlay_engine_open(const char* path, size_t path_size, const inlay_engine_options* options,
                          inlay_engine** engine, inlay_error** error) {
    if (engine) *engine = nullptr;
    return guarded(error, [&] {
        require(engine, "engine");
        const std::string file = path_argument(path, path_size);
        *engine = new inlay_engine(Engine::open(file, engine_options(read_struct(options, "options"))));
        return INLAY_OK;
    });
}

void inlay_engine_retain(const inlay_engine* engine) {
    retain_handle(engine);
}
void inlay_engine_release(const inlay_engine* engine) {
    release_handle(engine);
}

int32_t inlay_engine_get_info(const inlay_engine* engine, inlay_engine_info* info, inlay_error** error) {
    return guarded(error, [&] {
        clear_result(info, "info");
        const auto shared = require(engine, "engine").share("engine");
        inlay_engine_info ours{};
        ours.n_vocabulary = shared->n_vocabulary();
        ours.n_tensors = shared->file().tensors().size();
        for (const inlay::TensorInfo& tensor : shared->file().tensors())
            ours.n_parameters += tensor.dims[0] * tensor.dims[1] * tensor.dims[2] * tensor.dims[3];
        ours.file_bytes = shared->file_bytes();
        if (shared->has_weights()) fill_model_info(*shared, ours);
        write_struct(ours, info);
        return INLAY_OK;
    });
}

size_t inlay_engine_metadata_count(const inlay_engine* engine) {
    const Engine* object = engine ? engine->get() : nullptr;
    return object ? object->file().metadata().size() : 0;
}

int32_t inlay_engine_metadata_key(const inlay_engine* engine, size_t index, char* buffer, size_t capacity,
                                  size_t* needed, inlay_error** error) {
    return metadata_text(engine, index, buffer, capacity, needed, error,
                         [](const inlay::GgufMetadata& metadata, size_t i) { return metadata.key(i); });
}

int32_t inlay_engine_metadata_value(const inlay_engine* engine, size_t index, char* buffer, size_t capacity,
                                    size_t* needed, inlay_error** error) {
    return metadata_text(
        engine, index, buffer, capacity, needed, error,
        [](const inlay::GgufMetadata& metadata, size_t i) { return metadata.text(i, kMetadataTextBytes); });
}

int32_t inlay_estimate_options_init(inlay_estimate_options* options, uint32_t struct_size) {
    return init_struct(options, struct_size);
}

int32_t inlay_estimate_memory(const char* path, size_t path_size, const inlay_estimate_options* options,
                              inlay_estimate* estimate, inlay_error** error) {
    return guarded(error, [&] {
        clear_result(estimate, "estimate");
        const std::string file = path_argument(path, path_size);
        const inlay_estimate_options theirs = read_struct(options, "options");
        check_at_most(theirs.n_threads, kMaxThreads, "options->n_threads");
        const inlay::MemoryEstimate sums =
            inlay::estimate_memory(file, {.context_tokens = theirs.context_tokens,
                                          .key_type = kv_type(theirs.key_type, "options->key_type"),
                                          .value_type = kv_type(theirs.value_type, "options->value_type"),
                                          .max_step_tokens = step_tokens(theirs.max_step_tokens),
                                          .n_threads = theirs.n_threads});
        inlay_estimate ours{};
        ours.context_tokens = sums.context_tokens;
        ours.weight_bytes = sums.weight_bytes;
        ours.kv_bytes_per_token = sums.kv_bytes_per_token;
        ours.kv_bytes = sums.kv_bytes;
        ours.scratch_bytes = sums.scratch_bytes;
        ours.tokenizer_bytes = sums.tokenizer_bytes;
        ours.total_bytes = sums.total_bytes();
        write_struct(ours, estimate);
        return INLAY_OK;
    });
}
