#pragma once

#include <string>

namespace cli {

// The bytes of a file; "-" is stdin. INLAY_E_IO when it cannot be read.
std::string read_file(const std::string& path);

}  // namespace cli
