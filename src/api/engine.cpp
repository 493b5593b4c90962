#include <string>

#include "api/engine_options.h"
#include "api/handles.h"
#include "api/model_source.h"
#include "api/versioned_struct.h"

using namespace inlay::api;
using inlay::Engine;
using inlay::PathModelSource;

namespace {

constexpr size_t kMetadataTextBytes = 4096;

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

inlay_engine* open_engine(inlay::ModelSource& source, const HostedEngineOptions& hosted) {
    auto* const engine = new inlay_engine(Engine::open(source, hosted.options));
    hosted.taken();
    return engine;
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
        const HostedEngineOptions hosted = engine_options(options);
        PathModelSource source(file, hosted.map_file ? PathModelSource::Access::kMap : PathModelSource::Access::kRead);
        *engine = open_engine(source, hosted);
        return INLAY_OK;
    });
}

int32_t inlay_engine_open_source(const inlay_model_source* source, const inlay_engine_options* options,
                                 inlay_engine** engine, inlay_error** error) {
    if (engine) *engine = nullptr;
    return guarded(error, [&] {
        require(engine, "engine");
        const inlay_model_source theirs = read_struct(&require(source, "source"), "source");
        const HostedEngineOptions hosted = engine_options(options);
        if (hosted.map_file) invalid("options->flags has INLAY_ENGINE_MAP_FILE, but a source is no file");
        // Weights are packed into memory of the engine's own, so that nothing is needed when it is open.
        ReleaseCallback on_release(theirs.on_release, theirs.user);
        inlay::GivenModelSource ours = model_source(theirs);
        *engine = open_engine(ours, hosted);
        on_release.owe();
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
