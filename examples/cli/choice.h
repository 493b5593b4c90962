// Options that take one of a few names, and the constants of inlay.h that the names stand for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace cli {

struct Choice {
    const char* name;
    std::int32_t value;
};
using Choices = std::vector<Choice>;

extern const Choices kComputeModes;
extern const Choices kInstructionSets;
extern const Choices kKvTypes;
extern const Choices kFinishReasons;

// The name of a value; "unknown" for one that a later library may return.
std::string choice_name(const Choices& choices, std::int32_t value);

// Adds an option whose value becomes `target`; its default is what `target` holds.
CLI::Option* add_choice(CLI::App& app, const std::string& option, std::int32_t& target, const Choices& choices,
                        const std::string& description);

}  // namespace cli
