// What a session delivers, in the contract's values.
#pragma once

#include "engine/session.h"
#include "inlay/inlay.h"

namespace inlay::api {

inline int32_t finish_value(FinishReason reason) {
    // In the order of the enumerators.
    constexpr int32_t kValues[] = {INLAY_FINISH_NONE, INLAY_FINISH_STOP, INLAY_FINISH_LENGTH, INLAY_FINISH_STOP_STRING,
                                   INLAY_FINISH_CANCELLED};
    return kValues[static_cast<size_t>(reason)];
}

inline int32_t status_of(NextOutcome outcome) {
    constexpr int32_t kValues[] = {INLAY_OK, INLAY_MORE, INLAY_END};
    return kValues[static_cast<size_t>(outcome)];
}

inline inlay_chunk chunk_of(const Chunk& chunk) {
    inlay_chunk ours{};
    ours.struct_size = sizeof ours;
    ours.finish_reason = finish_value(chunk.finish);
    ours.tokens = chunk.tokens.data();
    ours.n_tokens = chunk.tokens.size();
    ours.text = chunk.text.data();
    ours.text_size = chunk.text.size();
    return ours;
}

}  // namespace inlay::api
