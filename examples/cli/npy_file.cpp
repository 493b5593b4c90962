#include "npy_file.h"

#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <unistd.h>

#include "inlay/inlay.hpp"

namespace cli {

static_assert(std::endian::native == std::endian::little, "values are written as they lie in memory");

namespace {

namespace fs = std::filesystem;

std::string followed(const std::string& path) {
    if (path == kStdout) return path;
    std::error_code error;
    const fs::path target = fs::canonical(path, error);
    return error ? path : target.string();
}

std::string name_until_whole(const std::string& path) {
    if (path == kStdout) return path;
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (fs::exists(status) && !fs::is_regular_file(status)) return path;
    return path + ".partial-" + std::to_string(getpid());
}

}  // namespace

NpyFile::NpyFile(const std::string& path, std::size_t n_rows, std::size_t n_columns)
    : path_(followed(path)),
      open_path_(name_until_whole(path_)),
      n_columns_(n_columns),
      file_(path_ == kStdout ? stdout : std::fopen(open_path_.c_str(), "wb")) {
    if (!file_) fail();
    constexpr std::size_t kPrefix = 10;  // magic, version, length of the header
    constexpr std::size_t kAlignment = 64;
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(n_rows) + ", " +
                         std::to_string(n_columns) + "), }";
    const std::size_t whole = (kPrefix + header.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
    header.append(whole - kPrefix - header.size() - 1, ' ');
    header += '\n';
    std::string prefix("\x93NUMPY\x01\x00", 8);
    prefix += static_cast<char>(header.size() & 0xff);
    prefix += static_cast<char>(header.size() >> 8);
    write(prefix.data(), prefix.size());
    write(header.data(), header.size());
}

NpyFile::~NpyFile() {
    if (!file_ || file_ == stdout) return;
    std::fclose(file_);
    if (open_path_ != path_) std::remove(open_path_.c_str());
}

void NpyFile::write_row(const float* values) {
    write(values, n_columns_ * sizeof(float));
}

void NpyFile::finish() {
    if (std::fflush(file_) != 0) fail();
    if (open_path_ != path_ && std::rename(open_path_.c_str(), path_.c_str()) != 0) fail();
    if (file_ != stdout && std::fclose(std::exchange(file_, nullptr)) != 0) fail();
}

void NpyFile::write(const void* bytes, std::size_t n_bytes) {
    if (std::fwrite(bytes, 1, n_bytes, file_) != n_bytes) fail();
}

void NpyFile::fail() const {
    throw inlay::Error(INLAY_E_IO, (path_ + ": " + std::strerror(errno)).c_str());
}

}  // namespace cli
