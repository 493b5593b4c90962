#include "choice.h"

#include "inlay/inlay.h"

namespace cli {

const Choices kComputeModes = {{"auto", INLAY_COMPUTE_AUTO}, {"f32", INLAY_COMPUTE_F32}};
const Choices kInstructionSets = {{"best", INLAY_INSTRUCTIONS_BEST},
                                  {"portable", INLAY_INSTRUCTIONS_PORTABLE},
                                  {"avx2", INLAY_INSTRUCTIONS_AVX2},
                                  {"avx512", INLAY_INSTRUCTIONS_AVX512},
                                  {"neon", INLAY_INSTRUCTIONS_NEON}};
const Choices kKvTypes = {{"f16", INLAY_KV_F16},
                          {"f32", INLAY_KV_F32},
                          {"bf16", INLAY_KV_BF16},
                          {"int8", INLAY_KV_INT8},
                          {"int4", INLAY_KV_INT4}};
const Choices kFinishReasons = {{"none", INLAY_FINISH_NONE},
                                {"stop", INLAY_FINISH_STOP},
                                {"length", INLAY_FINISH_LENGTH},
                                {"stop_string", INLAY_FINISH_STOP_STRING},
                                {"cancelled", INLAY_FINISH_CANCELLED}};

std::string choice_name(const Choices& choices, std::int32_t value) {
    for (const Choice& choice : choices)
        if (choice.value == value) return choice.name;
    return "unknown";
}

CLI::Option* add_choice(CLI::App& app, const std::string& option, std::int32_t& target, const Choices& choices,
                        const std::string& description) {
    std::string names;
    for (const Choice& choice : choices) names += (names.empty() ? "" : "|") + std::string(choice.name);
    const auto store = [option, names, &target, &choices](const CLI::results_t& given) {
        for (const Choice& choice : choices)
            if (given.front() == choice.name) {
                target = choice.value;
                return true;
            }
        throw CLI::ValidationError(option, "'" + given.front() + "' is not one of " + names);
    };
    return app.add_option(option, store, description)->type_name(names)->default_str(choice_name(choices, target));
}

}  // namespace cli
