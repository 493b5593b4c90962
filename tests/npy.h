// Reads NumPy's .npy files as the reference data holds them: little-endian, C order, one element type.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace inlay::test {

inline std::string read_file(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::runtime_error("cannot open " + path.string());
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

template <typename T>
struct NpyArray {
    std::vector<size_t> shape;
    std::vector<T> values;

    // Row i of an array [n_rows, n_cols].
    const T* row(size_t i) const { return values.data() + i * shape.at(1); }
};

// The name that .npy files use for an element type.
template <typename T>
constexpr const char* npy_type() {
    if constexpr (std::is_same_v<T, float>) return "<f4";
    if constexpr (std::is_same_v<T, uint16_t>) return "<u2";
    if constexpr (std::is_same_v<T, int32_t>) return "<i4";
    if constexpr (std::is_same_v<T, int64_t>) return "<i8";
}

template <typename T>
NpyArray<T> read_npy(const std::filesystem::path& path) {
    const std::string file = read_file(path);
    const auto fail = [&](const std::string& what) { throw std::runtime_error(path.string() + ": " + what); };
    const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(file.at(i))); };
    if (file.compare(0, 6, "\x93NUMPY") != 0) fail("is no .npy file");

    // Version 1 has a header length of two bytes, later ones of four.
    const bool short_length = byte(6) == 1;
    const size_t header_begin = short_length ? 10 : 12;
    size_t header_size = byte(8) | byte(9) << 8;
    if (!short_length) header_size |= byte(10) << 16 | byte(11) << 24;
    const std::string header = file.substr(header_begin, header_size);
    if (header.find(std::string("'descr': '") + npy_type<T>() + "'") == std::string::npos) fail("has another type");
    if (header.find("'fortran_order': False") == std::string::npos) fail("is not in C order");

    NpyArray<T> array;
    size_t n_values = 1;
    const size_t open = header.find('(');
    const size_t close = header.find(')');
    for (size_t at = open + 1; at < close;) {
        const size_t end = header.find_first_of(",)", at);
        if (header.find_first_of("0123456789", at) < end) {
            array.shape.push_back(std::stoull(header.substr(at, end - at)));
            n_values *= array.shape.back();
        }
        at = end + 1;
    }
    const size_t data_begin = header_begin + header_size;
    if (file.size() != data_begin + n_values * sizeof(T)) fail("has not the size its shape says");
    array.values.resize(n_values);
    std::memcpy(array.values.data(), file.data() + data_begin, n_values * sizeof(T));
    return array;
}

// Writes what read_npy reads, for programs that take arrays from files.
template <typename T>
void write_npy(const std::filesystem::path& path, const std::vector<size_t>& shape, const T* values) {
    std::string header = std::string("{'descr': '") + npy_type<T>() + "', 'fortran_order': False, 'shape': (";
    size_t n_values = 1;
    for (const size_t n : shape) {
        header += std::to_string(n) + ",";
        n_values *= n;
    }
    header += "), }";
    header.resize((header.size() + 10 + 1 + 63) / 64 * 64 - 11, ' ');
    header += '\n';
    std::ofstream out(path, std::ios::binary);
    out << "\x93NUMPY" << '\1' << '\0' << static_cast<char>(header.size() & 255)
        << static_cast<char>(header.size() >> 8);
    out << header;
    out.write(reinterpret_cast<const char*>(values), static_cast<std::streamsize>(n_values * sizeof(T)));
    if (!out) throw std::runtime_error("cannot write " + path.string());
}

}  // namespace inlay::test
