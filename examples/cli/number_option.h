// Options that take a number of a range, and nothing else: what CLI11 converts itself may wrap, so that -1 becomes
// 2^64 - 1.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>
#include <type_traits>

#include <CLI/CLI.hpp>

namespace cli {

template <typename Number>
struct Range {
    Number least, most;

    bool contains(Number number) const { return least <= number && number <= most; }
};

// What a session holds at most, and what one step computes at most.
inline constexpr std::int32_t kMostTokens = INT32_MAX;
inline constexpr std::int32_t kMostStepTokens = 4096;

template <typename Number>
std::string shortest_text(Number number) {
    std::array<char, 32> text{};
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

// Adds an option whose value becomes `target`; its default is what `target` holds.
template <typename Number>
CLI::Option* add_number(CLI::App& app, const std::string& option, Number& target,
                        Range<std::type_identity_t<Number>> range, const std::string& description) {
    const auto store = [option, &target, range](const CLI::results_t& given) {
        const std::string& text = given.front();
        const char* const end = text.data() + text.size();
        Number number{};
        const std::from_chars_result result = std::from_chars(text.data(), end, number);
        if (result.ec != std::errc{} || result.ptr != end || !range.contains(number))
            throw CLI::ValidationError(option, "'" + text + "' is not a " +
                                                   (std::is_integral_v<Number> ? "whole number" : "number") + " from " +
                                                   shortest_text(range.least) + " to " + shortest_text(range.most));
        target = number;
        return true;
    };
    return app.add_option(option, store, description)->type_name("N")->default_str(shortest_text(target));
}

}  // namespace cli
