#include "base/float_environment.h"

#include <catch2/catch.hpp>
#include <cfenv>

TEST_CASE("a step has the default arithmetic and the host gets its own back") {
    REQUIRE(std::fesetround(FE_UPWARD) == 0);
    {
        const inlay::DefaultFloatEnvironment environment;
        CHECK(std::fegetround() == FE_TONEAREST);
    }
    CHECK(std::fegetround() == FE_UPWARD);
    std::fesetround(FE_TONEAREST);
}
