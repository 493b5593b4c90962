// A host's blocks of memory or reader as the library's ModelSource.
#pragma once

#include "inlay/inlay.h"
#include "model/model_source.h"

namespace inlay::api {

// INLAY_E_INVALID_ARGUMENT naming what is wrong. The blocks, and what `user` points to, outlive the result.
GivenModelSource model_source(const inlay_model_source& source);

}  // namespace inlay::api
