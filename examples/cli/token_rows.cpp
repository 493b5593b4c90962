#include "token_rows.h"

#include <algorithm>

namespace cli {

void for_each_row(inlay::Session& session, const std::int32_t* tokens, std::size_t n_tokens, std::size_t first,
                  std::size_t n_chunk, const RowVisitor& visit) {
    for (std::size_t start = 0; start < n_tokens; start += n_chunk) {
        const std::size_t n = std::min(n_chunk, n_tokens - start);
        const std::size_t from = first <= start ? 0 : std::min(first - start, n);
        session.forward(tokens + start, n, from);
        if (from == n) continue;
        const inlay::Logits logits = session.logits();  // [n - from, n_vocabulary]
        for (std::size_t i = 0; i < logits.n_rows; ++i) visit(start + from + i, logits.row(i), logits.n_vocabulary);
    }
}

std::size_t chunk_for_logits(const inlay::EngineInfo& info) {
    constexpr std::size_t kLogitsBytes = std::size_t{64} << 20;
    const std::size_t row_bytes = std::max<std::size_t>(info.n_vocabulary, 1) * sizeof(float);
    return std::min<std::size_t>(info.max_step_tokens, std::max<std::size_t>(kLogitsBytes / row_bytes, 16));
}

}  // namespace cli
