// Operations that the baseline computes in software: exactly what the definitions say, on random bit patterns.
#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>

#include "kernels/cpu/lanes_portable.h"
#include "kernels/reference/half.h"
#include "tests/kernels/sample_weights.h"

using namespace inlay;
using namespace inlay::test;
namespace lanes = inlay::kernels::isa_portable;

namespace {

uint32_t bits_of(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}
float float_of(uint32_t bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

// Random bits; at times near the exponent of another value, so that sums cancel and ties happen.
float random_pattern(Random& random, float near) {
    const uint32_t bits = random();
    if (bits % 3 == 0) return float_of((bits_of(near) & 0x7f800000u) ^ (random() & 0x80ffffffu));
    if (bits % 3 == 1) return float_of(bits & 0xfff80000u);  // few fraction bits
    return float_of(random());
}

void check_fma(float a, float b, float c) {
    const float expected = std::fma(a, b, c);
    const float actual = lanes::exact_fma(a, b, c);
    float lane[16];  // the path of whole vectors
    lanes::store(lane, lanes::fma(lanes::broadcast(a), lanes::broadcast(b), lanes::broadcast(c)));
    if (!same_bits(expected, actual) || !same_bits(expected, lane[0]) || !same_bits(expected, lane[7])) {
        INFO(std::hexfloat << a << " * " << b << " + " << c << " gave " << actual << ", " << lane[0]);
        REQUIRE(bits_of(expected) == bits_of(actual));
        REQUIRE(bits_of(expected) == bits_of(lane[7]));
    }
}

}  // namespace

TEST_CASE("the software fused multiply-add rounds once", "[kernels]") {
    Random random(7);
    for (size_t i = 0; i < 4000000; ++i) {
        const float a = random_pattern(random, 1.0f);
        const float b = random_pattern(random, 1.0f);
        check_fma(a, b, random_pattern(random, a * b));
    }
    const float special[] = {0.0f,          -0.0f,    1.0f,      -1.0f,         0x1p-149f,       -0x1p-149f,
                             0x1p-126f,     INFINITY, -INFINITY, std::nanf(""), 0x1.fffffep127f, -0x1.fffffep127f,
                             0x1.000002p0f, 0x1p-24f};
    for (const float a : special)
        for (const float b : special)
            for (const float c : special) check_fma(a, b, c);
}

TEST_CASE("half precision agrees with its definition in both directions", "[kernels]") {
    for (uint32_t half = 0; half < 0x10000; ++half) {
        const auto bits = static_cast<uint16_t>(half);
        REQUIRE(bits_of(lanes::f16_to_f32(bits)) == bits_of(half_to_float(bits)));
    }
    Random random(8);
    for (size_t i = 0; i < 4000000; ++i) {
        // Around every half and every midpoint between two, then anything.
        float x = float_of(random());
        if (i % 2 == 0) {
            const float half = half_to_float(static_cast<uint16_t>(random()));
            x = float_of(bits_of(half) + (random() % 3 == 0 ? 0x1000u : 0u) + random() % 3 - 1);
        }
        const uint16_t expected = float_to_half(x);
        if (lanes::f32_to_f16(x) != expected) {
            INFO(std::hexfloat << x);
            REQUIRE(lanes::f32_to_f16(x) == expected);
        }
    }
}

TEST_CASE("floats round to even integers", "[kernels]") {
    Random random(9);
    for (size_t i = 0; i < 1000000; ++i) {
        float x = float_of(random());
        if (i % 2 == 0) x = static_cast<float>(static_cast<int32_t>(random()) >> (random() % 30)) * 0.5f;
        const bool fits = x >= -2147483648.0f && x < 2147483648.0f;
        const int32_t expected = fits ? static_cast<int32_t>(std::nearbyint(x)) : INT32_MIN;
        if (lanes::round_to_int(x) != expected) {
            INFO(std::hexfloat << x);
            REQUIRE(lanes::round_to_int(x) == expected);
        }
    }
}

TEST_CASE("folds take halves", "[kernels]") {
    Random random(10);
    for (size_t i = 0; i < 1000; ++i) {
        const std::vector<float> x = random_floats(16, random);
        const lanes::F32x16 all = lanes::load(x.data());
        float eight[8];
        for (size_t k = 0; k < 8; ++k) eight[k] = x[k] + x[k + 8];
        const float sum =
            ((eight[0] + eight[4]) + (eight[2] + eight[6])) + ((eight[1] + eight[5]) + (eight[3] + eight[7]));
        REQUIRE(same_bits(lanes::fold_sum(all), sum));
        float most = x[0];
        for (const float value : x) most = std::fmax(most, value);
        REQUIRE(lanes::fold_max(all) == most);
    }
}
