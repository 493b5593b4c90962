#include "engine/estimate.h"

#include "api/engine_options.h"
#include "api/kv_type.h"
#include "api/model_source.h"
#include "api/versioned_struct.h"

using namespace inlay::api;

namespace {

inlay::EstimateOptions estimate_options(const inlay_estimate_options* options) {
    const inlay_estimate_options theirs = read_struct(options, "options");
    check_at_most(theirs.n_threads, kMaxThreads, "options->n_threads");
    check_at_most(theirs.context_tokens, INT32_MAX, "options->context_tokens");
    return {.context_tokens = theirs.context_tokens,
            .key_type = kv_type(theirs.key_type, "options->key_type"),
            .value_type = kv_type(theirs.value_type, "options->value_type"),
            .max_step_tokens = step_tokens(theirs.max_step_tokens),
            .n_threads = theirs.n_threads};
}

void fill_estimate(const inlay::MemoryEstimate& sums, inlay_estimate* estimate) {
    inlay_estimate ours{};
    ours.context_tokens = sums.context_tokens;
    ours.weight_bytes = sums.weight_bytes;
    ours.kv_bytes_per_token = sums.kv_bytes_per_token;
    ours.kv_bytes = sums.kv_bytes;
    ours.scratch_bytes = sums.scratch_bytes;
    ours.tokenizer_bytes = sums.tokenizer_bytes;
    ours.total_bytes = sums.total_bytes();
    write_struct(ours, estimate);
}

}  // namespace

int32_t inlay_estimate_options_init(inlay_estimate_options* options, uint32_t struct_size) {
    return init_struct(options, struct_size);
}

int32_t inlay_estimate_memory(const char* path, size_t path_size, const inlay_estimate_options* options,
                              inlay_estimate* estimate, inlay_error** error) {
    return guarded(error, [&] {
        clear_result(estimate, "estimate");
        const std::string file = path_argument(path, path_size);
        fill_estimate(inlay::estimate_memory(file, estimate_options(options)), estimate);
        return INLAY_OK;
    });
}

int32_t inlay_estimate_source(const inlay_model_source* source, const inlay_estimate_options* options,
                              inlay_estimate* estimate, inlay_error** error) {
    return guarded(error, [&] {
        clear_result(estimate, "estimate");
        inlay::GivenModelSource ours = model_source(read_struct(&require(source, "source"), "source"));
        fill_estimate(inlay::estimate_memory(ours, estimate_options(options)), estimate);
        return INLAY_OK;
    });
}
