#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

namespace cli {

// A file to be read from its beginning; "-" is stdin. INLAY_E_IO when it cannot be.
class InputFile {
public:
    explicit InputFile(std::string path);
    ~InputFile();
    InputFile(const InputFile&) = delete;
    InputFile& operator=(const InputFile&) = delete;

    // The next bytes; fewer than `n_bytes` only at the end.
    std::size_t read(void* buffer, std::size_t n_bytes);

private:
    [[noreturn]] void fail() const;

    std::string path_;
    std::FILE* file_;
};

// All the bytes of a file.
std::string read_file(const std::string& path);

}  // namespace cli
