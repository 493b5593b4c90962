// inlay detokenize: the bytes of a list of token ids.
#include <memory>

#include "arguments.h"
#include "command.h"
#include "report.h"
#include "token_ids.h"

namespace cli {
namespace {

struct DetokenizeArguments {
    ModelArguments model;
    std::string ids;
    bool hide_special = false;
};

int detokenize(const DetokenizeArguments& arguments, bool json) {
    const std::vector<std::int32_t> ids = parse_ids(arguments.ids);
    const inlay::Engine engine = arguments.model.open_vocabulary();
    const std::string text = engine.detokenize(ids, arguments.hide_special ? 0u : INLAY_TEXT_SHOW_SPECIAL);
    if (json)
        print_json({{"text", text}, {"bytes", text.size()}});
    else
        print_text(text);
    return kExitSuccess;
}

}  // namespace

Command add_detokenize(CLI::App& app) {
    CLI::App* command = app.add_subcommand("detokenize", "Print the bytes of token ids, nothing added");
    const auto arguments = std::make_shared<DetokenizeArguments>();
    arguments->model.add_to(*command);
    add_name(*command, "--ids", arguments->ids, kTokenIdsFormat)->type_name("LIST")->required();
    command->add_flag("--no-special", arguments->hide_special, "Leave special tokens out");
    return {command, [arguments](bool json) { return detokenize(*arguments, json); }};
}

}  // namespace cli
