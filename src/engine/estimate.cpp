#include "engine/estimate.h"

#include <algorithm>

#include "backend/cpu/cpu_backend.h"
#include "base/error.h"
#include "engine/engine_cache.h"
#include "model/architectures/architectures.h"
#include "model/decoder.h"
#include "model/gguf_vocabulary.h"
#include "model/model_file.h"
#include "text/tokenizer.h"

namespace inlay {
namespace {

// The head of the file is kept as it lies there: metadata is answered from it.
uint64_t tokenizer_bytes_of(const GgufFile& file) {
    try {
        return file.data_offset() + Tokenizer::create(vocabulary_from_gguf(file))->memory_bytes();
    } catch (const Error& error) {
        if (error.status() != INLAY_E_UNSUPPORTED) throw;
        return 0;  // the weights can be told nevertheless
    }
}

}  // namespace

MemoryEstimate estimate_memory(ModelSource& source, const EstimateOptions& options) {
    const ModelFile file = ModelFile::open(source);
    const ModelSpec spec = make_model_spec(file.head, *file.bytes);
    const KvLayout layout = kv_layout_of(spec, options.key_type, options.value_type);
    const uint32_t context = options.context_tokens != 0 ? options.context_tokens : spec.context_tokens;
    const uint32_t n_threads = options.n_threads != 0 ? options.n_threads : available_processors();
    // A step never has more rows than the sequence.
    const uint32_t n_rows = std::min(options.max_step_tokens, context);
    const StepSize step{.n_rows = n_rows,
                        .n_positions = std::min(context, spec.context_tokens),
                        .n_sequences = 1,
                        .tile_bytes = layout.step_tile_bytes(context - n_rows, n_rows)};
    return {.context_tokens = context,
            .weight_bytes = CpuWeights::bytes_of(Decoder::tensors_of(spec, file.head)),
            .kv_bytes_per_token = layout.bytes_per_token(),
            .kv_bytes = kv_bytes_for(layout, context, options.max_step_tokens),
            .scratch_bytes = CpuBackend::scratch_bytes_for(Decoder::step_shape(spec, n_rows), step, n_threads),
            .tokenizer_bytes = tokenizer_bytes_of(file.head)};
}

MemoryEstimate estimate_memory(const std::string& path, const EstimateOptions& options) {
    PathModelSource source(path);
    return estimate_memory(source, options);
}

}  // namespace inlay
