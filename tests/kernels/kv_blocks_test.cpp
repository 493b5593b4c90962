// Closing blocks and rotating: every instruction set equals the definition; errors stay below what the steps of the
// codes allow, measured against plain double arithmetic; and no input is undefined.
#include <catch2/catch.hpp>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "kernels/kernels.h"
#include "tests/kernels/decode_kv.h"
#include "tests/kernels/fast_tables.h"
#include "tests/kernels/sample_weights.h"

using namespace inlay::kernels;
using namespace inlay::test;

namespace {

constexpr size_t kDimensions[] = {8, 16, 24, 40, 64, 72, 80, 96, 128, 256};
constexpr KvType kQuantized[] = {KvType::kInt8, KvType::kInt4};

// A block's codes and parameters, and a byte behind each that must stay.
struct Closed {
    Closed(size_t code_bytes, size_t parameter_bytes) : n_codes(code_bytes), n_parameters(parameter_bytes) {
        std::fill_n(codes.data(), n_codes + 1, std::byte{0xa5});
        std::fill_n(parameters.data(), n_parameters + 1, std::byte{0xa5});
    }
    bool operator==(const Closed& other) const {
        return std::memcmp(codes.data(), other.codes.data(), n_codes + 1) == 0 &&
               std::memcmp(parameters.data(), other.parameters.data(), n_parameters + 1) == 0;
    }
    bool stayed_inside() const {
        return codes.data()[n_codes] == std::byte{0xa5} && parameters.data()[n_parameters] == std::byte{0xa5};
    }

    size_t n_codes, n_parameters;
    AlignedBytes codes{n_codes + 1}, parameters{n_parameters + 1};
};

Closed close_keys(const Kernels& kernels, const std::vector<uint16_t>& tile, size_t dim, KvType type) {
    Closed closed(key_code_bytes(type, dim), key_parameter_bytes(type, dim));
    kernels.close_keys(reinterpret_cast<const std::byte*>(tile.data()), dim, type, closed.codes.data(),
                       closed.parameters.data());
    return closed;
}
Closed close_values(const Kernels& kernels, const std::vector<uint16_t>& tile, size_t dim, KvType type) {
    Closed closed(value_code_bytes(type, dim), value_parameter_bytes(type));
    kernels.close_values(reinterpret_cast<const std::byte*>(tile.data()), dim, type, closed.codes.data(),
                         closed.parameters.data());
    return closed;
}

// A tile of dim x 16 halves, each made by value(channel, token).
using MakeValue = std::function<float(size_t, size_t)>;
std::vector<uint16_t> key_tile(size_t dim, const MakeValue& value) {
    std::vector<uint16_t> tile(dim * kBlockTokens);
    for (size_t d = 0; d < dim; ++d)
        for (size_t t = 0; t < kBlockTokens; ++t) tile[d * kBlockTokens + t] = inlay::float_to_half(value(d, t));
    return tile;
}
std::vector<uint16_t> value_tile(size_t dim, const MakeValue& value) {
    std::vector<uint16_t> tile(dim * kBlockTokens);
    for (size_t d = 0; d < dim; ++d)
        for (size_t t = 0; t < kBlockTokens; ++t) tile[t * dim + d] = inlay::float_to_half(value(d, t));
    return tile;
}

float normal(Random& random) {
    static std::normal_distribution<float> distribution;
    return distribution(random);
}

// Blocks that try what closing decides on, by name.
struct Sample {
    std::string name;
    MakeValue value;
};
std::vector<Sample> samples(Random& random) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    return {
        {"normal", [&](size_t, size_t) { return normal(random); }},
        {"channels of different size and place",
         [&](size_t d, size_t) {
             const auto size = static_cast<float>(d % 7);
             return normal(random) * (0.1f + size) + 3.0f * size - 8.0f;
         }},
        {"zeros", [](size_t, size_t) { return 0.0f; }},
        {"zeros of both signs", [](size_t d, size_t t) { return (d + t) % 2 ? -0.0f : 0.0f; }},
        {"a constant", [](size_t, size_t) { return -3.7f; }},
        {"a constant above zero", [](size_t, size_t) { return 40000.0f; }},
        {"one value", [](size_t d, size_t t) { return d == 3 && t == 5 ? 1.0f : 0.0f; }},
        {"one token", [&](size_t, size_t t) { return t == 7 ? normal(random) : 0.0f; }},
        {"the largest halves", [&](size_t, size_t) { return random() % 2 ? 65504.0f : -65504.0f; }},
        {"the smallest halves",
         [&](size_t, size_t) { return static_cast<float>(static_cast<int>(random() % 5) - 2) * 0x1p-24f; }},
        {"small ones", [&](size_t, size_t) { return normal(random) * 1e-4f; }},
        {"halves of all kinds", [&](size_t, size_t) { return inlay::half_to_float(static_cast<uint16_t>(random())); }},
        {"an infinity", [&](size_t d, size_t t) { return d == 2 && t == 3 ? -kInfinity : normal(random); }},
        {"a NaN", [&](size_t d, size_t t) { return d == 2 && t == 3 ? kNan : normal(random); }},
        {"infinities", [&](size_t, size_t) { return kInfinity; }},
    };
}

double squared_error(const std::vector<double>& decoded, const std::function<double(size_t, size_t)>& truth,
                     size_t dim) {
    double error = 0.0;
    double all = 0.0;
    for (size_t t = 0; t < kBlockTokens; ++t) {
        for (size_t d = 0; d < dim; ++d) {
            error += std::pow(decoded[t * dim + d] - truth(d, t), 2);
            all += std::pow(truth(d, t), 2);
        }
    }
    return error / all;
}

}  // namespace

TEST_CASE("blocks are closed as the definition says") {
    for (const Kernels* kernels : fast_tables()) {
        INFO(kernels->name);
        Random random(1);
        for (size_t dim : kDimensions) {
            for (const Sample& sample : samples(random)) {
                INFO(sample.name << ", dim " << dim);
                for (KvType type : kQuantized) {
                    const std::vector<uint16_t> keys = key_tile(dim, sample.value);
                    const Closed closed_keys = close_keys(*kernels, keys, dim, type);
                    CHECK(closed_keys.stayed_inside());
                    CHECK(closed_keys == close_keys(reference(), keys, dim, type));
                    const std::vector<uint16_t> values = value_tile(dim, sample.value);
                    const Closed closed_values = close_values(*kernels, values, dim, type);
                    CHECK(closed_values.stayed_inside());
                    CHECK(closed_values == close_values(reference(), values, dim, type));
                }
            }
        }
    }
}

TEST_CASE("8-bit codes are within half a step of the exact keys and values") {
    Random random(2);
    for (size_t dim : kDimensions) {
        std::vector<std::vector<float>> x(dim, std::vector<float>(kBlockTokens));
        for (size_t d = 0; d < dim; ++d)
            for (float& value : x[d])
                value = inlay::half_to_float(inlay::float_to_half(normal(random) * (d < 64 ? 5.0f : 0.3f)));
        const auto exact = [&](size_t d, size_t t) { return x[d][t]; };
        const Closed keys = close_keys(reference(), key_tile(dim, exact), dim, KvType::kInt8);
        const Closed values = close_values(reference(), value_tile(dim, exact), dim, KvType::kInt8);
        const auto decoded_keys = decode_keys(KvType::kInt8, keys.codes.data(), keys.parameters.data(), dim);
        const auto decoded_values = decode_values(KvType::kInt8, values.codes.data(), values.parameters.data(), dim);
        for (size_t t = 0; t < kBlockTokens; ++t) {
            double largest = 0.0;
            std::vector<double> group_largest((dim + 63) / 64);
            for (size_t d = 0; d < dim; ++d) {
                const double magnitude = std::fabs(static_cast<double>(x[d][t]));
                largest = std::max(largest, magnitude);
                group_largest[d / 64] = std::max(group_largest[d / 64], magnitude);
            }
            for (size_t d = 0; d < dim; ++d) {
                const auto truth = static_cast<double>(x[d][t]);
                // Scales are rounded: up to 127 / 2048 of a step at the end of the range.
                CHECK(std::fabs(decoded_keys[t * dim + d] - truth) <= group_largest[d / 64] / 127 * 0.57);
                CHECK(std::fabs(decoded_values[t * dim + d] - truth) <= largest / 127 * 0.57);
            }
        }
    }
}

TEST_CASE("4-bit keys are within a step of their channel's range") {
    Random random(3);
    for (size_t dim : kDimensions) {
        std::vector<std::vector<float>> x(dim, std::vector<float>(kBlockTokens));
        for (size_t d = 0; d < dim; ++d) {
            const float middle = normal(random) * 3.0f;
            const float size = 0.5f + static_cast<float>(d % 5);
            for (float& value : x[d])
                value = inlay::half_to_float(inlay::float_to_half(middle + normal(random) * size));
        }
        const auto exact = [&](size_t d, size_t t) { return x[d][t]; };
        const Closed keys = close_keys(reference(), key_tile(dim, exact), dim, KvType::kInt4);
        const auto decoded = decode_keys(KvType::kInt4, keys.codes.data(), keys.parameters.data(), dim);
        double largest_low = 0.0;
        double largest_range = 0.0;
        std::vector<double> range(dim);
        for (size_t d = 0; d < dim; ++d) {
            const auto [low, high] = std::minmax_element(x[d].begin(), x[d].end());
            largest_low = std::max(largest_low, std::fabs(static_cast<double>(*low)));
            range[d] = static_cast<double>(*high) - static_cast<double>(*low);
            largest_range = std::max(largest_range, range[d]);
        }
        for (size_t d = 0; d < dim; ++d) {
            // The minimum is below by less than a unit of 1/127, or 1 scale unit; the scale is rounded to one of 255.
            const double unit =
                std::max(largest_low / 127, largest_range / (15 * 255)) * 1.01 + largest_range / (15 * 255);
            const double scale_unit = std::max(largest_low / (127 * 220), largest_range / (15 * 255)) * 1.01;
            const double step = (range[d] + unit) / 15 + scale_unit;
            for (size_t t = 0; t < kBlockTokens; ++t) {
                INFO(d << ", " << t << ": " << decoded[t * dim + d] << " of " << x[d][t]);
                CHECK(std::fabs(decoded[t * dim + d] - static_cast<double>(x[d][t])) <= step * 0.5 + 7.6 * scale_unit);
            }
        }
        CHECK(squared_error(
                  decoded, [&](size_t d, size_t t) { return static_cast<double>(x[d][t]); }, dim) < 0.0024);
    }
}

TEST_CASE("4-bit values lose less than a hundredth of a normal distribution's power") {
    Random random(4);
    for (size_t dim : kDimensions) {
        std::vector<std::vector<float>> x(dim, std::vector<float>(kBlockTokens));
        for (size_t d = 0; d < dim; ++d)
            for (size_t t = 0; t < kBlockTokens; ++t)  // tokens of very different size
                x[d][t] = inlay::half_to_float(inlay::float_to_half(normal(random) * std::ldexp(1.0f, int(t) - 8)));
        const auto exact = [&](size_t d, size_t t) { return x[d][t]; };
        const Closed values = close_values(reference(), value_tile(dim, exact), dim, KvType::kInt4);
        const auto decoded = decode_values(KvType::kInt4, values.codes.data(), values.parameters.data(), dim);
        for (size_t t = 0; t < kBlockTokens; ++t) {
            double error = 0.0, all = 0.0;
            for (size_t d = 0; d < dim; ++d) {
                const auto truth = static_cast<double>(x[d][t]);
                error += std::pow(decoded[t * dim + d] - truth, 2);
                all += truth * truth;
            }
            INFO("dim " << dim << ", token " << t);
            CHECK(error < all * (dim < 64 ? 0.02 : 0.0125));
        }
    }
}

TEST_CASE("zeros and what is not finite stay so") {
    const auto key = [](KvType type, float x) {
        const Closed closed = close_keys(reference(), key_tile(16, [&](size_t, size_t) { return x; }), 16, type);
        return decode_keys(type, closed.codes.data(), closed.parameters.data(), 16)[37];
    };
    const auto value = [](KvType type, float x) {
        const Closed closed = close_values(reference(), value_tile(16, [&](size_t, size_t) { return x; }), 16, type);
        return decode_values(type, closed.codes.data(), closed.parameters.data(), 16)[37];
    };
    for (KvType type : kQuantized) {
        CHECK(key(type, 0.0f) == 0.0);
        CHECK(value(type, 0.0f) == 0.0);
        for (const float x : {INFINITY, -INFINITY, std::nanf("")}) {
            CHECK_FALSE(std::isfinite(key(type, x)));
            CHECK_FALSE(std::isfinite(value(type, x)));
        }
        CHECK(key(type, 65504.0f) == Approx(65504.0).epsilon(0.01));
        CHECK(value(type, -65504.0f) == Approx(-65504.0).epsilon(0.11));
    }
}

TEST_CASE("a rotation is the Hadamard matrix of each piece, and its own inverse") {
    for (size_t dim = 8; dim <= 256; dim += 8) {
        Random random(5);
        const std::vector<float> x = random_floats(dim, random);
        std::vector<float> y = x;
        reference().rotate(y.data(), 1, dim);
        size_t begin = 0;
        for (size_t n = 256; n >= 8; n /= 2) {
            if (n > dim - begin) continue;
            for (size_t i = 0; i < n; ++i) {
                double sum = 0.0;
                for (size_t j = 0; j < n; ++j) {
                    const double term = static_cast<double>(x[begin + j]);
                    sum += __builtin_popcountll(i & j) % 2 ? -term : term;
                }
                CHECK(static_cast<double>(y[begin + i]) ==
                      Approx(sum / std::sqrt(static_cast<double>(n))).margin(1e-5));
            }
            begin += n;
        }
        REQUIRE(begin == dim);
        reference().rotate(y.data(), 1, dim);
        for (size_t i = 0; i < dim; ++i) CHECK(y[i] == Approx(x[i]).margin(1e-5));
    }
}

TEST_CASE("rotations equal their definition") {
    Random random(6);
    for (size_t dim = 8; dim <= 256; dim += 8) {
        for (const size_t n_vectors : {1, 3}) {
            std::vector<float> x = random_floats(dim * n_vectors + 1, random);
            x[1] = 0.0f;
            x[2] = -0.0f;
            x[5] = 1e30f;
            x[6] = 1e-44f;
            for (const bool finite : {true, false}) {
                if (!finite) x[3] = INFINITY;
                std::vector<float> expected = x;
                reference().rotate(expected.data(), n_vectors, dim);
                CHECK(same_bits(expected.back(), x.back()));
                for (const Kernels* kernels : fast_tables()) {
                    INFO(kernels->name << ", dim " << dim);
                    std::vector<float> actual = x;
                    kernels->rotate(actual.data(), n_vectors, dim);
                    CHECK(first_difference(actual.data(), expected.data(), x.size()) == x.size());
                }
            }
        }
    }
}
