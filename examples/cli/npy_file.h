// A NumPy file (.npy, version 1.0) of f32 values [n_rows, n_columns], written row by row.
#pragma once

#include <cstddef>
#include <string>

#include "output_file.h"

namespace cli {

class NpyFile {
public:
    NpyFile(const std::string& path, std::size_t n_rows, std::size_t n_columns);

    void write_row(const float* values);  // [n_columns]
    void finish() { file_.finish(); }

private:
    std::size_t n_columns_;
    OutputFile file_;
};

}  // namespace cli
