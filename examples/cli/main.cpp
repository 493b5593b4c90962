// inlay: the library at the command line. Uses the public contract only, as any program would.
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "command.h"
#include "inlay/inlay.hpp"
#include "report.h"

namespace cli {
namespace {

constexpr const char* kFooter =
    "Every command takes --json: one JSON object on stdout and nothing else there, an error too.\n"
    "Exit status: 0 success; 1 an error, with a sentence on stderr; 2 wrong usage; 130 interrupted by Ctrl-C.\n";

constexpr const char* kJsonHelp = "Print one JSON object";

// Known before the arguments are parsed, so that wrong usage is reported in the form that was asked for.
bool wants_json(int argc, char** argv) {
    for (int i = 1; i < argc; ++i)
        if (std::strcmp(argv[i], "--json") == 0) return true;
    return false;
}

std::string no_command(const CLI::App& app, const std::vector<Command>& commands) {
    const std::vector<std::string> given = app.remaining();
    std::string sentence = given.empty() ? "a command is missing" : "'" + given.front() + "' is not a command";
    const char* before = "; the commands are ";
    for (const Command& command : commands) {
        sentence += before + command.app->get_name();
        before = ", ";
    }
    return sentence;
}

int execute(int argc, char** argv) {
    CLI::App app("Text generation by large language models, in one command", "inlay");
    app.set_version_flag("--version", std::string("inlay ") + inlay::version());
    app.require_subcommand(1);
    app.footer(kFooter);
    app.get_formatter()->column_width(32);
    const std::vector<Command> commands = {add_run(app),        add_logits(app), add_perplexity(app), add_tokenize(app),
                                           add_detokenize(app), add_info(app),   add_bench(app)};
    bool json = false;
    app.add_flag("--json", json, kJsonHelp);
    for (const Command& command : commands) command.app->add_flag("--json", json, kJsonHelp);
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        print_text(app.help());
        return kExitSuccess;
    } catch (const CLI::CallForVersion& version) {
        print_text(version.what() + std::string("\n"));
        return kExitSuccess;
    } catch (const CLI::RequiredError&) {
        if (!app.get_subcommands().empty()) throw;
        throw CLI::ParseError(no_command(app, commands), CLI::ExitCodes::RequiredError);
    }
    for (const Command& command : commands)
        if (command.app->parsed()) return command.execute(json);
    return kExitUsage;
}

}  // namespace
}  // namespace cli

int main(int argc, char** argv) {
    const bool json = cli::wants_json(argc, argv);
    try {
        const int status = cli::execute(argc, argv);
        cli::flush_output();
        return status;
    } catch (const CLI::Error& error) {
        cli::report_error(json, INLAY_E_INVALID_ARGUMENT, error.what());
        return cli::kExitUsage;
    } catch (const inlay::Error& error) {
        if (error.code() != INLAY_E_CANCELLED) {
            cli::report_error(json, error.code(), error.what());
            return cli::kExitError;
        }
        cli::report_error(json, error.code(), std::string("interrupted: ") + error.what());
        return cli::kExitInterrupted;
    } catch (const std::bad_alloc&) {
        cli::report_error(json, INLAY_E_OUT_OF_MEMORY, "out of memory");
    } catch (const std::exception& error) {
        cli::report_error(json, INLAY_E_INTERNAL, error.what());
    }
    return cli::kExitError;
}
