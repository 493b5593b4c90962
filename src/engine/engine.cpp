#include "engine/engine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/float_environment.h"
#include "model/architectures/architectures.h"
#include "model/gguf_vocabulary.h"

namespace inlay {

uint32_t available_processors() {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        return std::max(1u, static_cast<uint32_t>(CPU_COUNT(&allowed)));
    return std::max(1u, static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN)));  // more than the set can name
}

Engine::Model::Model(const Engine& engine, ModelSpec spec, const ByteSource& source, const EngineOptions& options)
    : workers(engine.n_threads_),
      backend(*engine.kernels_, workers, engine.compute_, engine.pages_),
      decoder(std::move(spec), engine.file_, source, backend, engine.max_step_tokens_,
              [&](uint64_t done) { return !options.progress || options.progress(done, engine.weight_file_bytes()); }),
      scheduler(decoder, engine.max_step_tokens_) {}

std::shared_ptr<const Engine> Engine::open(const std::string& path, const EngineOptions& options) {
    const DefaultFloatEnvironment float_environment;  // rope frequencies and sums are made here
    const std::shared_ptr<Engine> engine(new Engine);
    const FileSource source(path);
    engine->file_bytes_ = source.size();
    engine->file_ = GgufFile::read(source);
    engine->tokenizer_ = Tokenizer::create(vocabulary_from_gguf(engine->file_));
    if (!options.vocabulary_only) engine->load_model(source, options);
    return engine;
}

void Engine::load_model(const ByteSource& source, const EngineOptions& options) {
    kernels_ = options.kernels;
    compute_ = options.compute;
    n_threads_ = options.n_threads != 0 ? options.n_threads : available_processors();
    max_step_tokens_ = options.max_step_tokens;
    ModelSpec spec = make_model_spec(file_, source);
    if (tokenizer_->n_tokens() > spec.n_vocabulary)
        throw Error(INLAY_E_FORMAT, "key 'tokenizer.ggml.tokens' has " + std::to_string(tokenizer_->n_tokens()) +
                                        " tokens for an output of " + std::to_string(spec.n_vocabulary));
    for (const TensorInfo* tensor : Decoder::tensors_of(spec, file_)) weight_file_bytes_ += tensor->bytes;
    model_ = std::make_unique<Model>(*this, std::move(spec), source, options);
}

uint32_t Engine::n_vocabulary() const {
    return model_ ? spec().n_vocabulary : static_cast<uint32_t>(tokenizer_->n_tokens());
}

void Engine::require_weights() const {
    if (!model_)
        throw Error(INLAY_E_STATE, "the engine was opened with INLAY_ENGINE_VOCABULARY_ONLY and has no weights");
}

}  // namespace inlay
