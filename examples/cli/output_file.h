// A file that is written from its beginning to its end. It grows beside its place under a name of its own and takes the
// place when it is whole: an error leaves what was there before. What is no regular file, as stdout or a pipe, is
// written as it comes.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>

namespace cli {

// The path that stands for stdout.
inline constexpr const char* kStdout = "-";

class OutputFile {
public:
    explicit OutputFile(const std::string& path);
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    // INLAY_E_IO where a file could not be opened, known before there is anything to write.
    static void require_writable(const std::string& path);

    void write(const void* bytes, std::size_t n_bytes);
    void finish();

private:
    [[noreturn]] void fail() const;

    std::string path_;       // where the file shall stand, symbolic links followed
    std::string open_path_;  // where it is written
    std::FILE* file_;
};

}  // namespace cli
