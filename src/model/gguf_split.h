// Models split over several GGUF files: what a part says about the whole in its metadata, and how the files are named.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/gguf.h"

namespace inlay {

// How many files the model has that `first`, a whole file or a part, belongs to. INLAY_E_FORMAT naming the key when it
// is not one that can be, INLAY_E_INVALID_ARGUMENT when this is another part than the first.
uint32_t n_parts_of(const GgufFile& first);

// Throws INLAY_E_FORMAT unless `part` says that it is number `index`, counted from 0, of `n_parts`.
void check_part(const GgufFile& part, uint32_t index, uint32_t n_parts);

// Throws INLAY_E_FORMAT unless the whole, joined, has as many tensors as it says.
void check_tensor_count(const GgufFile& whole);

// The path of part `index` of `n_parts`, beside the first one's: "NAME-00001-of-00003.gguf" and so on. Nothing when the
// first one's name is not of that form.
std::optional<std::string> split_path(std::string_view first_path, uint32_t index, uint32_t n_parts);

}  // namespace inlay
