// Runs a token sequence through sessions in chunks and hands out their rows of logits one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "inlay/inlay.hpp"

namespace cli {

// Row `index` predicts what follows token `index`; `logits` [n_sessions][n_vocabulary] is valid during the call.
using RowVisitor =
    std::function<void(std::size_t index, const std::vector<const float*>& logits, std::size_t n_vocabulary)>;

// Appends `tokens` to each session and visits the rows from `first` on. `n_chunk` tokens are computed at a time, by one
// session after the other; the rows do not depend on it.
void for_each_row(const std::vector<inlay::Session*>& sessions, const std::int32_t* tokens, std::size_t n_tokens,
                  std::size_t first, std::size_t n_chunk, const RowVisitor& visit);

// The engine's largest step, or fewer tokens where their logits would take more than 64 MiB.
std::size_t chunk_for_logits(const inlay::EngineInfo& info);

}  // namespace cli
