#include "token_ids.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

#include <CLI/CLI.hpp>

#include "input_file.h"

namespace cli {
namespace {

constexpr const char* kSpaces = " \t\r\n";
constexpr const char* kSeparators = ", \t\r\n";

[[noreturn]] void refuse(std::string_view at) {
    constexpr std::size_t kShown = 20;
    throw CLI::ValidationError("--ids", "not a list of token ids at '" + std::string(at.substr(0, kShown)) + "'");
}

std::string_view trimmed(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
    return text.substr(0, text.find_last_not_of(kSpaces) + 1);
}

std::string_view without_brackets(std::string_view list) {
    if (list.starts_with('[') != list.ends_with(']'))
        throw CLI::ValidationError("--ids", "one of the brackets around the list is missing");
    return list.starts_with('[') ? trimmed(list.substr(1, list.size() - 2)) : list;
}

// Takes the separator that `rest` begins with: spaces and at most one comma, which another id follows.
void take_separator(std::string_view& rest) {
    const std::size_t n = std::min(rest.find_first_not_of(kSeparators), rest.size());
    const auto n_commas = std::count(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(n), ',');
    const bool id_follows = n < rest.size();
    if (n_commas > (id_follows ? 1 : 0) || (id_follows && n == 0)) refuse(rest);
    rest.remove_prefix(n);
}

}  // namespace

std::vector<std::int32_t> parse_ids(const std::string& list) {
    if (list == "@") throw CLI::ValidationError("--ids", "the name of a file is missing after @");
    const std::string source = list.starts_with('@') ? read_file(list.substr(1)) : list;
    std::vector<std::int32_t> ids;
    for (std::string_view rest = without_brackets(trimmed(source)); !rest.empty(); take_separator(rest)) {
        std::int32_t id = 0;
        const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), id);
        if (error != std::errc{} || id < 0) refuse(rest);
        ids.push_back(id);
        rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    }
    return ids;
}

}  // namespace cli
