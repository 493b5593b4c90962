// inlay tokenize: the token ids of a text.
#include <memory>

#include "arguments.h"
#include "command.h"
#include "input_file.h"
#include "report.h"

namespace cli {
namespace {

struct TokenizeArguments {
    ModelArguments model;
    std::string text;
    std::string file = "-";
    bool special = false;
    bool no_bos = false;
};

int tokenize(const TokenizeArguments& arguments, bool has_text) {
    const std::string text = has_text ? arguments.text : read_file(arguments.file);
    const inlay::Engine engine = arguments.model.open_vocabulary();
    std::uint32_t flags = 0;
    if (!arguments.no_bos) flags |= INLAY_TEXT_ADD_SPECIAL;
    if (arguments.special) flags |= INLAY_TEXT_PARSE_SPECIAL;
    const std::vector<std::int32_t> tokens = engine.tokenize(text, flags);
    print_json(Json(tokens));
    return kExitSuccess;
}

}  // namespace

Command add_tokenize(CLI::App& app) {
    CLI::App* command = app.add_subcommand("tokenize", "Print the token ids of a text as a JSON list");
    const auto arguments = std::make_shared<TokenizeArguments>();
    arguments->model.add_to(*command);
    CLI::Option* text = command->add_option("-p,--prompt", arguments->text, "Text");
    add_input_file(*command, arguments->file)->default_str(arguments->file)->excludes(text);
    command->add_flag("--special", arguments->special, "Text that spells a special token becomes it");
    command->add_flag("--no-bos", arguments->no_bos,
                      "Do not add the special tokens that the model wants around a text");
    return {command, [arguments, text](bool) { return tokenize(*arguments, text->count() > 0); }};
}

}  // namespace cli
