#include "input_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "inlay/inlay.hpp"

namespace cli {

InputFile::InputFile(std::string path)
    : path_(std::move(path)), file_(path_ == "-" ? stdin : std::fopen(path_.c_str(), "rb")) {
    if (!file_) fail();
}

InputFile::~InputFile() {
    if (file_ != stdin) std::fclose(file_);
}

std::size_t InputFile::read(void* buffer, std::size_t n_bytes) {
    const std::size_t n_read = std::fread(buffer, 1, n_bytes, file_);
    if (std::ferror(file_)) fail();
    return n_read;
}

void InputFile::fail() const {
    throw inlay::Error(INLAY_E_IO, (path_ + ": " + std::strerror(errno)).c_str());
}

std::string read_file(const std::string& path) {
    InputFile file(path);
    std::string bytes;
    char part[1 << 16];
    while (const std::size_t n = file.read(part, sizeof part)) bytes.append(part, n);
    return bytes;
}

}  // namespace cli
