// What a command says: its result as one JSON object or as text on stdout, an error on stderr.
#pragma once

#include <cstdint>
#include <string_view>

#include <nlohmann/json.hpp>

namespace cli {

using Json = nlohmann::ordered_json;

// One line on stdout. Bytes that are not UTF-8 become U+FFFD.
void print_json(const Json& value);

void print_text(std::string_view text);

// Flushes stdout; throws INLAY_E_IO when something could not be written.
void flush_output();

// A sentence on stderr and, with `json`, an object {"error": {...}} on stdout.
void report_error(bool json, std::int32_t code, std::string_view message);

}  // namespace cli
