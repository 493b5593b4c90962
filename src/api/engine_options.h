// inlay_engine_options as the library's own, with what the host provides behind it.
#pragma once

#include <cstdint>
#include <memory>

#include "api/logger.h"
#include "api/page_provider.h"
#include "engine/engine.h"
#include "inlay/inlay.h"

namespace inlay::api {

inline constexpr uint32_t kMaxThreads = 256;

struct HostedEngineOptions {
    EngineOptions options;
    bool map_file = false;
    std::shared_ptr<HostPages> pages;  // null: the system's
    std::shared_ptr<HostLog> log;      // null: none

    // The engine is open: it has taken what the host provided.
    void taken() const;
};

// Defaults for NULL. INLAY_E_INVALID_ARGUMENT and INLAY_E_UNSUPPORTED name the field.
HostedEngineOptions engine_options(const inlay_engine_options* options);

// INLAY_INSTRUCTIONS_* of the kernels.
int32_t instruction_set_of(const kernels::Kernels& kernels);

// max_step_tokens of any options; 0 is the default.
uint32_t step_tokens(uint32_t wanted);

}  // namespace inlay::api
