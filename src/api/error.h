// The error object that a failed call gives the host.
#pragma once

#include <cstdint>
#include <string_view>

#include "inlay/inlay.h"

namespace inlay::api {

// Never fails: when memory is short the error is a static one that says so.
inlay_error* make_error(int32_t status, std::string_view sentence) noexcept;

}  // namespace inlay::api
