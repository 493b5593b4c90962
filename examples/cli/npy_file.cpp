#include "npy_file.h"

#include <bit>

namespace cli {

static_assert(std::endian::native == std::endian::little, "values are written as they lie in memory");

NpyFile::NpyFile(const std::string& path, std::size_t n_rows, std::size_t n_columns)
    : n_columns_(n_columns), file_(path) {
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
    file_.write(prefix.data(), prefix.size());
    file_.write(header.data(), header.size());
}

void NpyFile::write_row(const float* values) {
    file_.write(values, n_columns_ * sizeof(float));
}

}  // namespace cli
