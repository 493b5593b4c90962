// A NumPy file (.npy, version 1.0) of f32 values [n_rows, n_columns], written row by row.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

namespace cli {

class NpyFile {
public:
    NpyFile(std::string path, std::size_t n_rows, std::size_t n_columns);
    ~NpyFile();  // removes the file unless it was finished
    NpyFile(const NpyFile&) = delete;
    NpyFile& operator=(const NpyFile&) = delete;

    void write_row(const float* values);  // [n_columns]
    void finish();

private:
    void write(const void* bytes, std::size_t n_bytes);
    [[noreturn]] void fail() const;

    std::string path_;
    std::size_t n_columns_;
    std::FILE* file_;
};

}  // namespace cli
