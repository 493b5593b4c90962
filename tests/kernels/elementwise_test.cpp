// Row-wise kernels: every instruction set equals the definition bit for bit, and the definition is close to the truth.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/reference/exp.h"
#include "kernels/reference/sin_cos.h"
#include "tests/kernels/fast_tables.h"

using namespace inlay::kernels;
using inlay::test::fast_tables;

namespace {

std::vector<float> random_floats(std::mt19937& generator, size_t n, float deviation = 1.0f) {
    std::normal_distribution<float> normal(0.0f, deviation);
    std::vector<float> values(n);
    for (float& value : values) value = normal(generator);
    return values;
}

// Index of the first element whose bits differ (any two NaNs are alike); the size where none does.
size_t first_difference(const std::vector<float>& a, const std::vector<float>& b) {
    for (size_t i = 0; i < a.size(); ++i) {
        const bool both_nan = std::isnan(a[i]) && std::isnan(b[i]);
        if (!both_nan && std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i])) return i;
    }
    return a.size();
}

double distance_in_ulps(float value, long double truth) {
    const float nearest = std::fabs(static_cast<float>(truth));
    const float next = std::nextafter(nearest, std::numeric_limits<float>::infinity());
    return static_cast<double>(std::fabs(static_cast<long double>(value) - truth)) /
           (static_cast<double>(next) - static_cast<double>(nearest));
}

const size_t kWidths[] = {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 72, 80, 100, 576, 641, 1536};

}  // namespace

TEST_CASE("exp is within one ulp, and exact where it can be") {
    const float infinity = std::numeric_limits<float>::infinity();
    CHECK(std::bit_cast<uint32_t>(reference_exp(0.0f)) == 0x3f800000);
    CHECK(std::bit_cast<uint32_t>(reference_exp(-0.0f)) == 0x3f800000);
    CHECK(std::bit_cast<uint32_t>(reference_exp(-infinity)) == 0);
    CHECK(reference_exp(infinity) == infinity);
    CHECK(reference_exp(89.0f) == infinity);
    CHECK(reference_exp(88.72283f) < infinity);
    CHECK(reference_exp(-104.0f) == 0.0f);
    CHECK(reference_exp(-103.0f) == std::numeric_limits<float>::denorm_min());
    CHECK(std::isnan(reference_exp(std::numeric_limits<float>::quiet_NaN())));

    double worst = 0.0;
    for (float x = -103.9f; x < 88.7f; x += 0.000731f) {
        worst = std::max(worst, distance_in_ulps(reference_exp(x), std::exp(static_cast<long double>(x))));
    }
    for (float x = 1.0f; x > 1e-10f; x *= 0.9973f) {
        worst = std::max(worst, distance_in_ulps(reference_exp(x), std::exp(static_cast<long double>(x))));
        worst = std::max(worst, distance_in_ulps(reference_exp(-x), std::exp(static_cast<long double>(-x))));
    }
    CHECK(worst < 1.0);
}

TEST_CASE("sine and cosine are correctly rounded but for rare ties, far out too") {
    std::mt19937 generator(1);
    double worst = 0.0;
    const auto check = [&](float x) {
        const SinCos turn = reference_sin_cos(x);
        worst = std::max(worst, distance_in_ulps(turn.sin, std::sin(static_cast<long double>(x))));
        worst = std::max(worst, distance_in_ulps(turn.cos, std::cos(static_cast<long double>(x))));
    };
    for (int exponent = -30; exponent < 28; ++exponent) {
        std::uniform_real_distribution<float> magnitude(std::ldexp(1.0f, exponent), std::ldexp(2.0f, exponent));
        for (int i = 0; i < 2000; ++i) {
            const float x = magnitude(generator);
            check(x);
            check(-x);
        }
    }
    // The floats nearest to multiples of pi / 2, where the result nearly vanishes.
    for (int n = 1; n < 100000; n += 7) {
        const float x = static_cast<float>(1.57079632679489661923L * n);
        check(x);
        check(std::nextafter(x, 0.0f));
    }
    CHECK(worst < 0.501);
    CHECK(reference_sin_cos(0.0f).sin == 0.0f);
    CHECK(reference_sin_cos(0.0f).cos == 1.0f);
    CHECK(std::isnan(reference_sin_cos(std::numeric_limits<float>::infinity()).sin));
}

TEST_CASE("rms_norm equals its definition") {
    std::mt19937 generator(2);
    for (const Kernels* kernels : fast_tables()) {
        INFO(kernels->name);
        for (size_t n : kWidths) {
            const size_t stride = n + 3;
            const size_t rows = 5;
            const std::vector<float> x = random_floats(generator, rows * stride, 3.0f);
            const std::vector<float> weight = random_floats(generator, n);
            std::vector<float> expected(rows * stride, 7.0f);
            std::vector<float> actual = expected;
            reference().rms_norm(x.data(), stride, weight.data(), 1e-5f, rows, n, expected.data(), stride);
            kernels->rms_norm(x.data(), stride, weight.data(), 1e-5f, rows, n, actual.data(), stride);
            CHECK(first_difference(expected, actual) == expected.size());
            std::vector<float> in_place = x;
            kernels->rms_norm(in_place.data(), stride, weight.data(), 1e-5f, rows, n, in_place.data(), stride);
            for (size_t row = 0; row < rows; ++row) {
                for (size_t i = n; i < stride; ++i) in_place[row * stride + i] = 7.0f;
            }
            CHECK(first_difference(expected, in_place) == expected.size());
        }
    }
}

TEST_CASE("rms_norm is a norm") {
    std::mt19937 generator(3);
    const size_t n = 576;
    const std::vector<float> x = random_floats(generator, n, 2.0f);
    const std::vector<float> weight = random_floats(generator, n);
    std::vector<float> y(n);
    reference().rms_norm(x.data(), n, weight.data(), 1e-6f, 1, n, y.data(), n);
    double squares = 0.0;
    for (float value : x) squares += static_cast<double>(value) * static_cast<double>(value);
    const double scale = 1.0 / std::sqrt(squares / static_cast<double>(n) + 1e-6);
    for (size_t i = 0; i < n; ++i) {
        const double truth = static_cast<double>(x[i]) * scale * static_cast<double>(weight[i]);
        REQUIRE(static_cast<double>(y[i]) == Approx(truth).epsilon(1e-6).margin(1e-12));
    }
}

TEST_CASE("softmax_weights equal their definition") {
    for (size_t n : {size_t{1}, size_t{15}, size_t{16}, size_t{33}, size_t{5000}}) {
        std::vector<float> x(n), expected(n), actual(n + 1, 7.0f);
        for (size_t i = 0; i < n; ++i) x[i] = 3.5f - static_cast<float>((i * 7919) % 9001) / 40;
        for (float temperature : {1.0f, 0.7f, 2.3f}) {
            reference().softmax_weights(x.data(), n, 3.5f, temperature, expected.data());
            for (const Kernels* kernels : fast_tables()) {
                kernels->softmax_weights(x.data(), n, 3.5f, temperature, actual.data());
                CHECK(first_difference(expected, {actual.begin(), actual.end() - 1}) == n);
                CHECK(actual[n] == 7.0f);
            }
        }
    }
}

TEST_CASE("silu_multiply and gelu_multiply equal their definitions") {
    std::mt19937 generator(4);
    for (const auto function : {&Kernels::silu_multiply, &Kernels::gelu_multiply})
        for (const Kernels* kernels : fast_tables()) {
            INFO(kernels->name);
            for (size_t n : kWidths) {
                const size_t stride = n + 2;
                const size_t rows = 3;
                std::vector<float> gate = random_floats(generator, rows * stride, 8.0f);
                const std::vector<float> up = random_floats(generator, rows * stride);
                // The ends of the exponential function, and beyond.
                const float edges[] = {-1e30f, 1e30f, -88.8f, 88.8f, -103.5f, 104.5f, 0.0f, -0.0f, 87.4f, -200.0f};
                for (size_t i = 0; i < std::size(edges) && i < n; ++i) gate[i * 7 % n] = edges[i];
                std::vector<float> expected(rows * stride, 7.0f);
                std::vector<float> actual = expected;
                (reference().*function)(gate.data(), up.data(), stride, rows, n, expected.data(), stride);
                (kernels->*function)(gate.data(), up.data(), stride, rows, n, actual.data(), stride);
                CHECK(first_difference(expected, actual) == expected.size());
                (kernels->*function)(gate.data(), up.data(), stride, rows, n, gate.data(), stride);
                for (size_t row = 0; row < rows; ++row) {
                    for (size_t i = n; i < stride; ++i) gate[row * stride + i] = 7.0f;
                }
                CHECK(first_difference(expected, gate) == expected.size());
            }
        }
}

TEST_CASE("the vector exponential equals the scalar one over all magnitudes") {
    // silu(-x) * 1 = -x / (1 + exp(x)) shows every bit of exp where it is small, so go through many small results.
    std::vector<float> gate;
    for (uint32_t bits = 0; bits < 0x43000000; bits += 0x1003) {
        gate.push_back(std::bit_cast<float>(bits));
        gate.push_back(-std::bit_cast<float>(bits));
    }
    const std::vector<float> up(gate.size(), 1.0f);
    std::vector<float> expected(gate.size());
    std::vector<float> actual(gate.size());
    reference().silu_multiply(gate.data(), up.data(), gate.size(), 1, gate.size(), expected.data(), gate.size());
    for (const Kernels* kernels : fast_tables()) {
        INFO(kernels->name);
        kernels->silu_multiply(gate.data(), up.data(), gate.size(), 1, gate.size(), actual.data(), gate.size());
        CHECK(first_difference(expected, actual) == expected.size());
    }
}

TEST_CASE("rope equals its definition") {
    std::mt19937 generator(5);
    const struct {
        size_t head_dim;
        size_t n_pairs;
    } shapes[] = {{8, 4}, {16, 8}, {24, 12}, {64, 32}, {64, 16}, {72, 36}, {80, 40}, {96, 24}, {128, 64}, {256, 128}};
    for (const Kernels* kernels : fast_tables()) {
        INFO(kernels->name);
        for (const auto& shape : shapes) {
            std::vector<float> frequencies(shape.n_pairs);
            for (size_t i = 0; i < shape.n_pairs; ++i) {
                frequencies[i] = std::pow(10000.0f, -static_cast<float>(i) / static_cast<float>(shape.n_pairs));
            }
            for (uint32_t position : {0u, 1u, 17u, 4095u, 131071u, 1000003u}) {
                std::vector<float> expected_angles(2 * shape.n_pairs);
                std::vector<float> angles(2 * shape.n_pairs);
                reference().rope_angles(position, frequencies.data(), 1.1f, shape.n_pairs, expected_angles.data());
                kernels->rope_angles(position, frequencies.data(), 1.1f, shape.n_pairs, angles.data());
                CHECK(first_difference(expected_angles, angles) == angles.size());
                for (bool interleaved : {false, true}) {
                    std::vector<float> expected = random_floats(generator, 3 * shape.head_dim);
                    std::vector<float> actual = expected;
                    reference().rope_rotate(expected.data(), 3, shape.head_dim, angles.data(), shape.n_pairs,
                                            interleaved);
                    kernels->rope_rotate(actual.data(), 3, shape.head_dim, angles.data(), shape.n_pairs, interleaved);
                    CHECK(first_difference(expected, actual) == expected.size());
                }
            }
        }
    }
}

TEST_CASE("gelu is the tanh form to within rounding") {
    for (float x = -12.0f; x < 12.0f; x += 0.0137f) {
        const float one = 1.0f;
        float y = 0;
        reference().gelu_multiply(&x, &one, 1, 1, 1, &y, 1);
        const double v = static_cast<double>(x);
        const double expected =
            0.5 * v * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (v + 0.044715 * v * v * v)));
        CHECK(static_cast<double>(y) == Approx(expected).epsilon(1e-5).margin(1e-6));
    }
}
