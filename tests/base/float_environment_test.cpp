#include "base/float_environment.h"

#include <catch2/catch.hpp>
#include <cfenv>
#include <cstdint>

TEST_CASE("a step has the default arithmetic and the host gets its own back") {
    REQUIRE(std::fesetround(FE_UPWARD) == 0);
    {
        const inlay::DefaultFloatEnvironment environment;
        CHECK(std::fegetround() == FE_TONEAREST);
    }
    CHECK(std::fegetround() == FE_UPWARD);
    std::fesetround(FE_TONEAREST);
}

#if defined(__aarch64__)

namespace {

uint64_t control() {
    uint64_t bits;
    asm volatile("mrs %0, fpcr" : "=r"(bits));
    return bits;
}

}  // namespace

TEST_CASE("a step knows neither flushed subnormals, nor default NaNs, nor halves without infinities") {
    constexpr uint64_t kFlushToZero = 1u << 24, kDefaultNan = 1u << 25, kAlternativeHalf = 1u << 26;
    const uint64_t host = kFlushToZero | kDefaultNan | kAlternativeHalf;
    asm volatile("msr fpcr, %0" : : "r"(host));
    uint64_t within = 1;
    volatile float subnormal = 0.0f;  // so that it is computed within
    {
        const inlay::DefaultFloatEnvironment environment;
        within = control();
        const volatile float smallest = 0x1p-126f;
        subnormal = smallest * 0.5f;
    }
    const uint64_t after = control();
    asm volatile("msr fpcr, %0" : : "r"(uint64_t{0}));
    CHECK(within == 0);
    CHECK(static_cast<float>(subnormal) == 0x1p-127f);
    CHECK(after == host);
}

#endif
