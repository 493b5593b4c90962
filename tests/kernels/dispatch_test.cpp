// Which tables this processor runs: those that the tests of this program compare with the reference.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "tests/kernels/fast_tables.h"

using namespace inlay;
using namespace inlay::test;

namespace {

std::string names_of_fast_tables() {
    std::string names;
    for (const kernels::Kernels* table : fast_tables()) names += (names.empty() ? "" : " ") + std::string(table->name);
    return names;
}

}  // namespace

TEST_CASE("the fastest table is the last of those that the processor runs", "[kernels]") {
    const std::vector<const kernels::Kernels*> tables = fast_tables();
    CHECK(&kernels::fastest() == tables.back());
    CHECK(std::string(kernels::portable().name) == "portable");
    for (const kernels::Kernels* table : {kernels::avx2(), kernels::avx512()}) {
        CHECK_FALSE((table && kernels::neon()));
    }
}

// Whoever runs the tests on a processor that they know says what must be compared there (scripts/test-aarch64).
TEST_CASE("the tables compared are those that are expected", "[kernels]") {
    const char* expected = std::getenv("INLAY_EXPECTED_KERNELS");
    if (!expected) return;
    CHECK(names_of_fast_tables() == expected);
}
