#include "token_rows.h"

#include <algorithm>

namespace cli {

void for_each_row(const std::vector<inlay::Session*>& sessions, const std::int32_t* tokens, std::size_t n_tokens,
                  std::size_t first, std::size_t n_chunk, const RowVisitor& visit) {
    std::vector<inlay::Logits> logits(sessions.size());  // [n - from, n_vocabulary] each
    std::vector<const float*> rows(sessions.size());
    for (std::size_t start = 0; start < n_tokens; start += n_chunk) {
        const std::size_t n = std::min(n_chunk, n_tokens - start);
        const std::size_t from = first <= start ? 0 : std::min(first - start, n);
        for (inlay::Session* session : sessions) session->forward(tokens + start, n, from);
        if (from == n) continue;
        for (std::size_t s = 0; s < sessions.size(); ++s) logits[s] = sessions[s]->logits();
        for (std::size_t i = 0; i < n - from; ++i) {
            for (std::size_t s = 0; s < sessions.size(); ++s) rows[s] = logits[s].row(i);
            visit(start + from + i, rows, logits[0].n_vocabulary);
        }
    }
}

std::size_t chunk_for_logits(const inlay::EngineInfo& info) {
    constexpr std::size_t kLogitsBytes = std::size_t{64} << 20;
    const std::size_t row_bytes = std::max<std::size_t>(info.n_vocabulary, 1) * sizeof(float);
    return std::min<std::size_t>(info.max_step_tokens, std::max<std::size_t>(kLogitsBytes / row_bytes, 16));
}

}  // namespace cli
