// Model files forget to say which tokens end a turn, or give them the type of ordinary text. Their spellings are known.
#pragma once

#include "text/vocabulary.h"

namespace inlay {

// Fills the special ids that are still missing by the tokens' spellings, corrects the kinds of tokens that are plainly
// control tokens, and lists the tokens that end a generation. What the file said is kept.
void recognise_special_tokens(Vocabulary& vocabulary);

// Phi-3's special tokens, but for three, swallow the white space behind them; its files tell it by their name only.
void recognise_phi3_trimming(Vocabulary& vocabulary);

}  // namespace inlay
