// What a model will take in memory, from its file's header alone.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/kernels.h"
#include "model/model_source.h"

namespace inlay {

struct EstimateOptions {
    uint32_t context_tokens;  // 0: the model's
    kernels::KvType key_type;
    kernels::KvType value_type;
    uint32_t max_step_tokens;
    uint32_t n_threads;  // 0: one per available processor
};

struct MemoryEstimate {
    uint32_t context_tokens;
    uint64_t weight_bytes;
    uint64_t kv_bytes_per_token;
    uint64_t kv_bytes;  // of one sequence of context_tokens
    uint64_t scratch_bytes;
    uint64_t tokenizer_bytes;  // 0 for a vocabulary that is not supported

    uint64_t total_bytes() const { return weight_bytes + kv_bytes + scratch_bytes + tokenizer_bytes; }
};

MemoryEstimate estimate_memory(ModelSource& source, const EstimateOptions& options);
MemoryEstimate estimate_memory(const std::string& path, const EstimateOptions& options);

}  // namespace inlay
