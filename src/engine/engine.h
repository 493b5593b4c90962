// One model, open: tokenizer, weights, decoder, workers. Immutable from then on; steps of its sessions go through it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "backend/cpu/cpu_backend.h"
#include "base/log.h"
#include "base/pages.h"
#include "base/workers.h"
#include "engine/model_fingerprint.h"
#include "engine/scheduler.h"
#include "model/decoder.h"
#include "model/model_file.h"
#include "text/tokenizer.h"

namespace inlay {

struct EngineOptions {
    static constexpr uint32_t kDefaultStepTokens = 512;

    bool vocabulary_only = false;
    std::shared_ptr<Workers> workers;  // null: workers of its own
    uint32_t n_threads = 0;            // of those; 0: one per available processor
    ComputeMode compute = ComputeMode::kAuto;
    const kernels::Kernels* kernels = nullptr;
    uint32_t max_step_tokens = kDefaultStepTokens;
    std::function<bool(uint64_t done, uint64_t total)> progress;
    std::shared_ptr<PageProvider> pages;  // null: the system's
    bool in_place = false;  // matrices are used where the source keeps them in memory, as in a mapped file
    Log log;
};

// Processors this process may run on.
uint32_t available_processors();

class Engine final {
public:
    // Reads the source during the call only, by this thread where it serves no other. `in_place`: keeps its parts.
    static std::shared_ptr<const Engine> open(ModelSource& source, const EngineOptions& options);
    static std::shared_ptr<const Engine> open(const std::string& path, const EngineOptions& options);

    const GgufFile& file() const { return file_; }
    uint64_t file_bytes() const { return file_bytes_; }  // of all its parts
    const Tokenizer& tokenizer() const { return *tokenizer_; }
    // Vocabulary size that token ids are checked against: the logits' width, which may exceed the tokenizer's.
    uint32_t n_vocabulary() const;

    // INLAY_E_STATE when the engine was opened for its vocabulary only.
    void require_weights() const;
    bool has_weights() const { return model_ != nullptr; }
    const ModelSpec& spec() const { return model_->decoder.spec(); }
    const CpuBackend& backend() const { return model_->backend; }
    const kernels::Kernels& kernels() const { return *kernels_; }
    ComputeMode compute() const { return compute_; }
    uint32_t n_threads() const { return n_threads_; }
    uint32_t max_step_tokens() const { return max_step_tokens_; }
    const ModelFingerprint& fingerprint() const { return fingerprint_; }
    uint64_t weight_file_bytes() const { return weight_file_bytes_; }  // that the weights take in the file
    const std::shared_ptr<PageProvider>& pages() const { return pages_; }

    Scheduler& scheduler() const { return model_->scheduler; }

private:
    // What weights make possible. Members are destroyed from the last to the first.
    struct Model {
        std::shared_ptr<Workers> workers;
        CpuBackend backend;
        Decoder decoder;
        Scheduler scheduler;

        Model(const Engine& engine, ModelSpec spec, const ByteSource& source, const EngineOptions& options,
              const Backend::Loading& loading);
    };

    explicit Engine(const EngineOptions& options);

    void load_model(const ByteSource& source, Vocabulary vocabulary, const EngineOptions& options);

    Log log_;
    std::shared_ptr<PageProvider> pages_;
    GgufFile file_;
    std::shared_ptr<const ByteSource> source_;  // of weights in place
    uint64_t file_bytes_ = 0;
    std::unique_ptr<Tokenizer> tokenizer_;
    const kernels::Kernels* kernels_ = nullptr;
    ComputeMode compute_ = ComputeMode::kAuto;
    uint32_t n_threads_ = 0;
    uint32_t max_step_tokens_ = 0;
    uint64_t weight_file_bytes_ = 0;
    ModelFingerprint fingerprint_;
    std::unique_ptr<Model> model_;
};

}  // namespace inlay
