// The error object that a failed call gives the host.
#pragma once

#include <cstdint>
#include <string_view>

#include "inlay/inlay.h"

namespace inlay::api {

// Never fails: when there is no memory for the error it is out_of_memory_error().
inlay_error* make_error(int32_t status, std::string_view sentence) noexcept;

// A static one, which takes no memory.
inlay_error* out_of_memory_error() noexcept;

}  // namespace inlay::api
