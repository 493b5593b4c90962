#include "api/engine_options.h"

#include <string>

#include "api/handles.h"
#include "api/versioned_struct.h"

namespace inlay::api {
namespace {

constexpr uint32_t kMaxStepTokens = 4096;

const kernels::Kernels& kernels_for(int32_t instruction_set) {
    const kernels::Kernels* chosen = nullptr;
    switch (instruction_set) {
        case INLAY_INSTRUCTIONS_BEST:
            return kernels::fastest();
        case INLAY_INSTRUCTIONS_PORTABLE:
            return kernels::portable();
        case INLAY_INSTRUCTIONS_AVX2:
            chosen = kernels::avx2();
            break;
        case INLAY_INSTRUCTIONS_AVX512:
            chosen = kernels::avx512();
            break;
        case INLAY_INSTRUCTIONS_NEON:
            chosen = kernels::neon();
            break;
        default:
            invalid("options->instruction_set is " + std::to_string(instruction_set) +
                    ", which is no INLAY_INSTRUCTIONS_* value");
    }
    if (!chosen) throw Error(INLAY_E_UNSUPPORTED, "options->instruction_set: this processor lacks the instructions");
    return *chosen;
}

ComputeMode compute_mode(int32_t compute) {
    if (compute == INLAY_COMPUTE_AUTO) return ComputeMode::kAuto;
    if (compute == INLAY_COMPUTE_F32) return ComputeMode::kF32;
    invalid("options->compute is " + std::to_string(compute) + ", which is no INLAY_COMPUTE_* value");
}

std::shared_ptr<Workers> shared_workers(const inlay_engine_options& options) {
    if (!options.workers) return nullptr;
    if (options.n_threads != 0)
        invalid("options->n_threads is " + std::to_string(options.n_threads) +
                " and options->workers is set, which has its own");
    return options.workers->share("options->workers");
}

}  // namespace

int32_t instruction_set_of(const kernels::Kernels& kernels) {
    if (&kernels == kernels::avx512()) return INLAY_INSTRUCTIONS_AVX512;
    if (&kernels == kernels::avx2()) return INLAY_INSTRUCTIONS_AVX2;
    if (&kernels == kernels::neon()) return INLAY_INSTRUCTIONS_NEON;
    return INLAY_INSTRUCTIONS_PORTABLE;
}

uint32_t step_tokens(uint32_t wanted) {
    check_at_most(wanted, kMaxStepTokens, "options->max_step_tokens");
    return wanted != 0 ? wanted : EngineOptions::kDefaultStepTokens;
}

HostedEngineOptions engine_options(const inlay_engine_options* options) {
    const inlay_engine_options theirs = read_struct(options, "options");
    check_flags(theirs.flags, INLAY_ENGINE_VOCABULARY_ONLY | INLAY_ENGINE_MAP_FILE, "options->flags");
    check_at_most(theirs.n_threads, kMaxThreads, "options->n_threads");
    HostedEngineOptions hosted;
    hosted.map_file = (theirs.flags & INLAY_ENGINE_MAP_FILE) != 0;
    EngineOptions& ours = hosted.options;
    ours.in_place = hosted.map_file;
    ours.vocabulary_only = (theirs.flags & INLAY_ENGINE_VOCABULARY_ONLY) != 0;
    ours.workers = shared_workers(theirs);
    ours.n_threads = theirs.n_threads;
    ours.compute = compute_mode(theirs.compute);
    ours.kernels = &kernels_for(theirs.instruction_set);
    ours.max_step_tokens = step_tokens(theirs.max_step_tokens);
    if (theirs.progress)
        ours.progress = [progress = theirs.progress, user = theirs.progress_user](uint64_t done, uint64_t total) {
            return progress(user, done, total) == 0;
        };
    if (theirs.pages) ours.pages = hosted.pages = std::make_shared<HostPages>(*theirs.pages);
    if (theirs.logger) ours.log = Log(hosted.log = std::make_shared<HostLog>(*theirs.logger));
    return hosted;
}

void HostedEngineOptions::taken() const {
    if (pages) pages->on_release().owe();
    if (log) log->on_release().owe();
}

}  // namespace inlay::api
