#include "output_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <unistd.h>

#include "inlay/inlay.hpp"

namespace cli {
namespace {

namespace fs = std::filesystem;

std::string followed(const std::string& path) {
    if (path == kStdout) return path;
    std::error_code error;
    if (const fs::path target = fs::canonical(path, error); !error) return target.string();
    constexpr int kMostLinks = 40;
    fs::path target = path;  // of a link whose target is not there yet
    for (int i = 0; i < kMostLinks && !fs::exists(target, error) && fs::is_symlink(target, error); ++i)
        target = target.parent_path() / fs::read_symlink(target, error);
    return target.string();
}

std::string name_until_whole(const std::string& path) {
    if (path == kStdout) return path;
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (fs::exists(status) && !fs::is_regular_file(status)) return path;
    return path + ".partial-" + std::to_string(getpid());
}

}  // namespace

OutputFile::OutputFile(const std::string& path)
    : path_(followed(path)),
      open_path_(name_until_whole(path_)),
      file_(path_ == kStdout ? stdout : std::fopen(open_path_.c_str(), "wb")) {
    if (!file_) fail();
    std::error_code error;  // what is replaced keeps who may read it; a new file is what the process makes it
    const fs::file_status replaced = fs::status(path_, error);
    if (open_path_ != path_ && fs::exists(replaced)) fs::permissions(open_path_, replaced.permissions(), error);
}

void OutputFile::require_writable(const std::string& path) {
    if (const std::string target = followed(path); name_until_whole(target) != target) OutputFile probe(path);
}

OutputFile::~OutputFile() {
    if (!file_ || file_ == stdout) return;
    std::fclose(file_);
    if (open_path_ != path_) std::remove(open_path_.c_str());
}

void OutputFile::finish() {
    if (std::fflush(file_) != 0) fail();
    if (open_path_ != path_ && std::rename(open_path_.c_str(), path_.c_str()) != 0) fail();
    if (file_ != stdout && std::fclose(std::exchange(file_, nullptr)) != 0) fail();
}

void OutputFile::write(const void* bytes, std::size_t n_bytes) {
    if (std::fwrite(bytes, 1, n_bytes, file_) != n_bytes) fail();
}

void OutputFile::fail() const {
    throw inlay::Error(INLAY_E_IO, (path_ + ": " + std::strerror(errno)).c_str());
}

}  // namespace cli
