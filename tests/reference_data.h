// Where the reference data made by other implementations lies, and how a test says that it is not there.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace inlay::test {

// Small committed data: always present.
inline std::filesystem::path data_dir() {
    return INLAY_TEST_DATA_DIR;
}

// The full reference data: INLAY_REFDATA, or beside the checkout. Empty when neither exists.
inline std::filesystem::path reference_dir() {
    if (const char* dir = std::getenv("INLAY_REFDATA"); dir && *dir) return dir;
    const std::filesystem::path beside = INLAY_REFERENCE_DATA_DIR;
    return std::filesystem::exists(beside / "README.md") ? beside : std::filesystem::path{};
}

// A file of a model that the test script fetched; empty when it was not fetched.
inline std::filesystem::path model_file(const char* name) {
    const char* dir = std::getenv("INLAY_MODELS");
    const std::filesystem::path path = std::filesystem::path(dir && *dir ? dir : INLAY_MODELS_DIR) / name;
    return std::filesystem::exists(path) ? path : std::filesystem::path{};
}

}  // namespace inlay::test

// Ends the test case with a line that says what was skipped and why.
#define INLAY_SKIP(reason)           \
    do {                             \
        WARN("skipped: " << reason); \
        return;                      \
    } while (false)
