// Sessions in files.
#pragma once

#include <string>

#include "inlay/inlay.hpp"
#include "output_file.h"

namespace cli {

// Finishes the file.
void save_session(inlay::Session& session, OutputFile& file);
// Into an empty session; "-" is stdin. What goes on behind the session is INLAY_E_FORMAT.
inlay::LoadResult load_session(inlay::Session& session, const std::string& path);

}  // namespace cli
