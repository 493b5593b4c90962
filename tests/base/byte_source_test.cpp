#include "base/byte_source.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/joined_source.h"
#include "base/mapped_source.h"
#include "tests/temporary_directory.h"

using namespace inlay;
using namespace inlay::test;

namespace {

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
    const TemporaryDirectory directory;
    const FileSource source(directory.write("gr\xc3\xb6\xc3\x9f\x65.bin", "0123456789"));
    CHECK(source.size() == 10);
    CHECK(source.serves_any_thread());
    CHECK(source.view(3, 4) == nullptr);
    CHECK(refusal(INLAY_E_IO, [&] { source.view(7, 4); }).find("passes the end") != std::string::npos);
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
    const TemporaryDirectory directory;
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
    const TemporaryDirectory directory;
    const std::string path = directory.write("shrinks", "0123456789");
    const FileSource source(path);
    REQUIRE(::truncate(path.c_str(), 4) == 0);
    char buffer[8];
    CHECK(refusal(INLAY_E_IO, [&] { source.read_at(0, buffer, 8); }) ==
          "'" + path + "': ends at byte 4; it was longer when it was opened");
}

TEST_CASE("several threads read one file") {
    const TemporaryDirectory directory;
    std::string bytes(1 << 16, '\0');
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 + (i >> 8));
    const FileSource source(directory.write("shared", bytes));
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
    CHECK(std::string(reinterpret_cast<const char*>(source.view(4, 2)), 2) == "45");
    CHECK(refusal(INLAY_E_IO, [&] { source.view(8, 3); }).find("passes the end") != std::string::npos);
    MemorySource(std::span<const std::byte>{}).read_at(0, nullptr, 0);
}

TEST_CASE("a mapped file is read like any other") {
    const TemporaryDirectory directory;
    const MappedSource source(directory.write("mapped", "0123456789"));
    CHECK(source.size() == 10);
    CHECK(source.serves_any_thread());
    char buffer[4] = {};
    source.read_at(3, buffer, 4);
    CHECK(std::string(buffer, 4) == "3456");
    CHECK(std::string(reinterpret_cast<const char*>(source.view(8, 2)), 2) == "89");
    CHECK(refusal(INLAY_E_IO, [&] { source.read_at(8, buffer, 3); }).find("passes the end") != std::string::npos);
    CHECK(refusal(INLAY_E_IO, [&] { source.view(11, 0); }).find("passes the end") != std::string::npos);

    const MappedSource empty(directory.write("empty", ""));
    CHECK(empty.size() == 0);
    empty.read_at(0, nullptr, 0);
    const std::string missing = (directory.path / "missing").string();
    CHECK(refusal(INLAY_E_IO, [&] { MappedSource{missing}; }) ==
          "'" + missing + "': cannot open: No such file or directory");
}

namespace {

class OneThreadSource final : public ByteSource {
public:
    uint64_t size() const override { return 3; }
    void read_at(uint64_t, void* buffer, size_t n) const override { std::memset(buffer, '-', n); }
    bool serves_any_thread() const override { return false; }
};

}  // namespace

TEST_CASE("joined sources are one after the other") {
    const auto part = [](const char* text) { return std::make_shared<const MemorySource>(text, std::strlen(text)); };
    const JoinedSource source({part("0123"), part(""), part("45"), part("6789")});
    CHECK(source.size() == 10);
    CHECK(source.begin_of(0) == 0);
    CHECK(source.begin_of(2) == 4);
    CHECK(source.begin_of(3) == 6);
    for (size_t begin = 0; begin <= 10; ++begin)
        for (size_t n = 0; begin + n <= 10; ++n) {
            std::string bytes(n, '?');
            source.read_at(begin, bytes.data(), n);
            CHECK(bytes == std::string("0123456789").substr(begin, n));
        }
    char buffer[4];
    CHECK(refusal(INLAY_E_IO, [&] { source.read_at(8, buffer, 3); }).find("passes the end") != std::string::npos);

    const auto* view = reinterpret_cast<const char*>(source.view(4, 2));
    REQUIRE(view != nullptr);
    CHECK(std::string(view, 2) == "45");
    CHECK(source.view(5, 2) == nullptr);  // in two parts
    CHECK(source.serves_any_thread());

    const JoinedSource mixed({part("012"), std::make_shared<const OneThreadSource>()});
    CHECK_FALSE(mixed.serves_any_thread());
    mixed.read_at(1, buffer, 4);
    CHECK(std::string(buffer, 4) == "12--");
    CHECK(mixed.view(0, 3) != nullptr);
    CHECK(mixed.view(3, 3) == nullptr);
}

TEST_CASE("joined sources are refused when offsets can not tell them apart") {
    class Huge final : public ByteSource {
    public:
        uint64_t size() const override { return uint64_t{1} << 62; }
        void read_at(uint64_t, void*, size_t) const override {}
    };
    const auto huge = std::make_shared<const Huge>();
    CHECK(JoinedSource({huge}).size() == huge->size());
    CHECK(refusal(INLAY_E_UNSUPPORTED, [&] { JoinedSource({huge, huge}); }).find("2^63") != std::string::npos);
}
