// Token ids as the command line takes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cli {

inline constexpr const char* kTokenIdsFormat = "LIST with commas or spaces, as [1, 2, 3] too, or @FILE";

// The value of --ids, read as kTokenIdsFormat says. CLI::ValidationError for what is no list, INLAY_E_IO for a file
// that cannot be read.
std::vector<std::int32_t> parse_ids(const std::string& list);

}  // namespace cli
