// A NumPy file (.npy, version 1.0) of f32 values [n_rows, n_columns], written row by row. It grows beside its place
// under a name of its own and takes the place when it is whole: an error leaves what was there before. What is no
// regular file, as stdout or a pipe, is written as it comes.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

namespace cli {

// The path that stands for stdout.
inline constexpr const char* kStdout = "-";

class NpyFile {
public:
    NpyFile(const std::string& path, std::size_t n_rows, std::size_t n_columns);
    ~NpyFile();
    NpyFile(const NpyFile&) = delete;
    NpyFile& operator=(const NpyFile&) = delete;

    void write_row(const float* values);  // [n_columns]
    void finish();

private:
    void write(const void* bytes, std::size_t n_bytes);
    [[noreturn]] void fail() const;

    std::string path_;       // where the file shall stand, symbolic links followed
    std::string open_path_;  // where it is written
    std::size_t n_columns_;
    std::FILE* file_;
};

}  // namespace cli
