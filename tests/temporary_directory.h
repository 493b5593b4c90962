// A directory of its own that goes with the test.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace inlay::test {

struct TemporaryDirectory {
    TemporaryDirectory() {
        std::string form = (std::filesystem::temp_directory_path() / "inlay-test-XXXXXX").string();
        path = ::mkdtemp(form.data());
    }
    ~TemporaryDirectory() { std::filesystem::remove_all(path); }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

    // Writes a file and returns its path.
    std::string write(const std::string& name, const std::string& bytes) const {
        std::ofstream(path / name, std::ios::binary) << bytes;
        return (path / name).string();
    }

    std::filesystem::path path;
};

}  // namespace inlay::test
