#include "choice.h"

#include "inlay/inlay.h"

namespace cli {

const Choices kComputeModes = {{"auto", INLAY_COMPUTE_AUTO}, {"f32", INLAY_COMPUTE_F32}};
const Choices kInstructionSets = {{"best", INLAY_INSTRUCTIONS_BEST},
                                  {"portable", INLAY_INSTRUCTIONS_PORTABLE},
                                  {"avx2", INLAY_INSTRUCTIONS_AVX2},
                                  {"avx512", INLAY_INSTRUCTIONS_AVX512}};
const Choices kKvTypes = {{"f16", INLAY_KV_F16}, {"f32", INLAY_KV_F32}};
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
    std::vector<std::string> names;
    std::string joined;
    for (const Choice& choice : choices) {
        names.emplace_back(choice.name);
        joined += (joined.empty() ? "" : "|") + names.back();
    }
    const auto store = [&target, &choices](const std::string& name) {
        for (const Choice& choice : choices)
            if (name == choice.name) target = choice.value;
    };
    const auto one_of = [names, joined](const std::string& name) {
        for (const std::string& known : names)
            if (name == known) return std::string();
        return name + " is not one of " + joined;
    };
    return app.add_option_function<std::string>(option, store, description)
        ->type_name(joined)
        ->default_str(choice_name(choices, target))
        ->check(CLI::Validator(one_of, "", ""));
}

}  // namespace cli
