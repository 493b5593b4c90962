#include "input_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "inlay/inlay.hpp"

namespace cli {
namespace {

struct Close {
    void operator()(std::FILE* file) const {
        if (file != stdin) std::fclose(file);
    }
};

[[noreturn]] void fail(const std::string& path) {
    throw inlay::Error(INLAY_E_IO, (path + ": " + std::strerror(errno)).c_str());
}

}  // namespace

std::string read_file(const std::string& path) {
    const std::unique_ptr<std::FILE, Close> file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
    if (!file) fail(path);
    std::string bytes;
    char part[1 << 16];
    while (const std::size_t n = std::fread(part, 1, sizeof part, file.get())) bytes.append(part, n);
    if (std::ferror(file.get())) fail(path);
    return bytes;
}

}  // namespace cli
