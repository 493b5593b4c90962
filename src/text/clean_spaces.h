// The detokenised text of older vocabularies drops spaces that their training texts had before punctuation and English
// contractions ("do n't ." becomes "don't."). Model files expect it of whoever shows whole texts.
#pragma once

#include <string>

namespace inlay {

// " ?" " !" " ." " ," lose their space; " ' " loses both; " 's" " 'm" " 're" " 've" lose theirs.
void clean_up_spaces(std::string& text);

}  // namespace inlay
