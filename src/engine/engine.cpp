#include "engine/engine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/float_environment.h"
#include "engine/opening_log.h"
#include "model/architectures/architectures.h"
#include "model/gguf_vocabulary.h"

namespace inlay {

uint32_t available_processors() {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        return std::max(1u, static_cast<uint32_t>(CPU_COUNT(&allowed)));
    return std::max(1u, static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN)));  // more than the set can name
}

Engine::Engine(const EngineOptions& options)
    : log_(options.log), pages_(options.pages ? options.pages : system_pages()) {}

Engine::Model::Model(const Engine& engine, ModelSpec spec, const ByteSource& source, const EngineOptions& options,
                     const Backend::Loading& loading)
    : workers(options.workers ? options.workers : std::make_shared<Workers>(engine.n_threads_)),
      backend(*engine.kernels_, *workers, engine.compute_, engine.pages_),
      decoder(std::move(spec), engine.file_, source, backend, engine.max_step_tokens_, loading),
      scheduler(decoder, engine.max_step_tokens_) {}

std::shared_ptr<const Engine> Engine::open(ModelSource& source, const EngineOptions& options) {
    const DefaultFloatEnvironment float_environment;  // rope frequencies and sums are made here
    const OpeningLog log(options.log);
    const std::shared_ptr<Engine> engine(new Engine(options));
    ModelFile file = ModelFile::open(source);
    log.began(file, source);
    engine->file_ = std::move(file.head);
    engine->file_bytes_ = file.bytes->size();
    if (options.in_place && !options.vocabulary_only) engine->source_ = file.bytes;
    Vocabulary vocabulary = vocabulary_from_gguf(engine->file_);
    if (options.vocabulary_only)
        engine->tokenizer_ = Tokenizer::create(std::move(vocabulary));
    else
        engine->load_model(*file.bytes, std::move(vocabulary), options);
    log.ended(*engine, options.pages == nullptr);
    return engine;
}

std::shared_ptr<const Engine> Engine::open(const std::string& path, const EngineOptions& options) {
    PathModelSource source(path);
    return open(source, options);
}

void Engine::load_model(const ByteSource& source, Vocabulary vocabulary, const EngineOptions& options) {
    kernels_ = options.kernels;
    compute_ = options.compute;
    n_threads_ = options.n_threads != 0 ? options.n_threads : available_processors();
    if (options.workers) n_threads_ = options.workers->n_threads();
    max_step_tokens_ = options.max_step_tokens;
    ModelSpec spec = make_model_spec(file_, source);
    if (vocabulary.tokens.size() > spec.n_vocabulary)
        throw Error(INLAY_E_FORMAT, "key 'tokenizer.ggml.tokens' has " + std::to_string(vocabulary.tokens.size()) +
                                        " tokens for an output of " + std::to_string(spec.n_vocabulary));
    for (const TensorInfo* tensor : Decoder::tensors_of(spec, file_)) weight_file_bytes_ += tensor->bytes;
    Backend::Loading loading;
    if (options.progress) loading.progress = [&](uint64_t done) { return options.progress(done, weight_file_bytes_); };
    loading.alongside = [&] { tokenizer_ = Tokenizer::create(std::move(vocabulary)); };
    loading.in_place = options.in_place;
    model_ = std::make_unique<Model>(*this, std::move(spec), source, options, loading);
    fingerprint_ = fingerprint_of(file_, source);  // now that its bytes were just read
}

uint32_t Engine::n_vocabulary() const {
    return model_ ? spec().n_vocabulary : static_cast<uint32_t>(tokenizer_->n_tokens());
}

void Engine::require_weights() const {
    if (!model_)
        throw Error(INLAY_E_STATE, "the engine was opened with INLAY_ENGINE_VOCABULARY_ONLY and has no weights");
}

}  // namespace inlay
