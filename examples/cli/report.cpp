#include "report.h"

#include <cstdio>

#include "inlay/inlay.hpp"

namespace cli {

void print_text(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
}

void print_json(const Json& value) {
    print_text(value.dump(-1, ' ', false, Json::error_handler_t::replace));
    print_text("\n");
}

void flush_output() {
    if (std::fflush(stdout) != 0 || std::ferror(stdout))
        throw inlay::Error(INLAY_E_IO, "the output could not be written");
}

void report_error(bool json, std::int32_t code, std::string_view message) {
    std::fflush(stdout);
    std::fprintf(stderr, "inlay: %.*s\n", static_cast<int>(message.size()), message.data());
    if (!json) return;
    print_json({{"error", {{"name", inlay_status_name(code)}, {"code", code}, {"message", message}}}});
    std::fflush(stdout);
}

}  // namespace cli
