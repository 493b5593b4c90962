// Sessions in files.
#pragma once

#include <string>

#include "inlay/inlay.hpp"

namespace cli {

// The file is there when it is whole; an error leaves what was there before.
void save_session(inlay::Session& session, const std::string& path);
// Into an empty session; "-" is stdin. What goes on behind the session is INLAY_E_FORMAT.
inlay::LoadResult load_session(inlay::Session& session, const std::string& path);

}  // namespace cli
