#include "base/byte_source.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "tests/npy.h"

using namespace inlay;
using namespace inlay::test;

namespace {

// A directory of its own that goes with the test.
struct Directory {
    Directory() {
        std::string form = (std::filesystem::temp_directory_path() / "inlay-byte-source-XXXXXX").string();
        path = ::mkdtemp(form.data());
    }
    ~Directory() { std::filesystem::remove_all(path); }
    std::filesystem::path path;
};

void write_file(const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream(path) << bytes;
}

template <typename Call>
std::string refusal(int32_t status, const Call& call) {
    try {
        call();
    } catch (const Error& error) {
        CHECK(error.status() == status);
        return error.sentence();
    }
    return "no error";
}

std::string open_refusal(const std::string& path, int32_t status = INLAY_E_IO) {
    return refusal(status, [&] { FileSource source(path); });
}

}  // namespace

TEST_CASE("a file is read at any offset") {
    const Directory directory;
    const std::string path = (directory.path /
                              "gr\xc3\xb6\xc3\x9f"
                              "e.bin")
                                 .string();
    write_file(path, "0123456789");
    const FileSource source(path);
    CHECK(source.size() == 10);
    char buffer[4] = {};
    source.read_at(3, buffer, 4);
    CHECK(std::string(buffer, 4) == "3456");
    source.read_at(10, buffer, 0);
    CHECK(refusal(INLAY_E_IO, [&] { source.read_at(7, buffer, 4); }) ==
          "reading 4 bytes at offset 7 passes the end of the 10 bytes there are");
    CHECK(refusal(INLAY_E_IO, [&] { source.read_at(UINT64_MAX, buffer, 4); }).find("passes the end") !=
          std::string::npos);
}

TEST_CASE("what is no readable file is refused with its path and the reason") {
    const Directory directory;
    const std::string missing = (directory.path / "missing.gguf").string();
    CHECK(open_refusal(missing) == "'" + missing + "': cannot open: No such file or directory");
    CHECK(open_refusal(directory.path.string()) == "'" + directory.path.string() + "': is a directory, not a file");
    const std::string pipe = (directory.path / "pipe").string();
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    CHECK(open_refusal(pipe) == "'" + pipe + "': is not a regular file");  // and does not wait for a writer
    CHECK(open_refusal(std::string("a\0b", 3), INLAY_E_INVALID_ARGUMENT) == "path 'a\\x00b' contains a zero byte");
    CHECK(open_refusal("") == "'': cannot open: No such file or directory");
}

TEST_CASE("a file that shrinks while open is an error, not a wait") {
    const Directory directory;
    const std::string path = (directory.path / "shrinks").string();
    write_file(path, "0123456789");
    const FileSource source(path);
    REQUIRE(::truncate(path.c_str(), 4) == 0);
    char buffer[8];
    CHECK(refusal(INLAY_E_IO, [&] { source.read_at(0, buffer, 8); }) ==
          "'" + path + "': ends at byte 4; it was longer when it was opened");
}

TEST_CASE("several threads read one file") {
    const Directory directory;
    const std::string path = (directory.path / "shared").string();
    std::string bytes(1 << 16, '\0');
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 + (i >> 8));
    write_file(path, bytes);
    const FileSource source(path);
    std::vector<size_t> wrong(4, 0);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < wrong.size(); ++t)
        threads.emplace_back([&, t] {
            char buffer[64];
            for (size_t offset = t; offset + sizeof buffer <= bytes.size(); offset += 61) {
                source.read_at(offset, buffer, sizeof buffer);
                wrong[t] += bytes.compare(offset, sizeof buffer, buffer, sizeof buffer) != 0;
            }
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == std::vector<size_t>(4, 0));
}

TEST_CASE("memory is read like a file") {
    const MemorySource source("0123456789", 10);
    CHECK(source.size() == 10);
    char buffer[3];
    source.read_at(7, buffer, 3);
    CHECK(std::string(buffer, 3) == "789");
    CHECK(refusal(INLAY_E_IO, [&] { source.read_at(8, buffer, 3); }).find("passes the end") != std::string::npos);
    MemorySource(std::span<const std::byte>{}).read_at(0, nullptr, 0);
}
