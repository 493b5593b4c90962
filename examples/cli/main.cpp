// inlay: the library at the command line. Uses the public contract only, as any program would.
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "command.h"
#include "inlay/inlay.hpp"
#include "report.h"

namespace {

constexpr const char* kFooter =
    "Every command takes --json: one JSON object on stdout and nothing else there.\n"
    "Exit status: 0 success; 1 an error, with a sentence on stderr; 2 wrong usage; 130 interrupted by Ctrl-C.";

// Known before the arguments are parsed, so that wrong usage is reported in the form that was asked for.
bool wants_json(int argc, char** argv) {
    for (int i = 1; i < argc; ++i)
        if (std::strcmp(argv[i], "--json") == 0) return true;
    return false;
}

int execute(const std::vector<cli::Command>& commands) {
    for (const cli::Command& command : commands) {
        if (!command.app->parsed()) continue;
        const int status = command.execute();
        cli::finish_output();
        return status;
    }
    return cli::kExitUsage;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Text generation by large language models, in one command", "inlay");
    app.set_version_flag("--version", std::string("inlay ") + inlay::version());
    app.require_subcommand(1);
    app.footer(kFooter);
    app.get_formatter()->column_width(32);
    const std::vector<cli::Command> commands = {
        cli::add_run(app),        cli::add_logits(app), cli::add_perplexity(app), cli::add_tokenize(app),
        cli::add_detokenize(app), cli::add_info(app),   cli::add_bench(app)};
    const bool json = wants_json(argc, argv);
    try {
        app.parse(argc, argv);
        return execute(commands);
    } catch (const CLI::Error& error) {
        if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
        cli::report_error(json, INLAY_E_INVALID_ARGUMENT, error.what());
        return cli::kExitUsage;
    } catch (const inlay::Error& error) {
        cli::report_error(json, error.code(), error.what());
        return error.code() == INLAY_E_CANCELLED ? cli::kExitInterrupted : cli::kExitError;
    } catch (const std::bad_alloc&) {
        cli::report_error(json, INLAY_E_OUT_OF_MEMORY, "out of memory");
    } catch (const std::exception& error) {
        cli::report_error(json, INLAY_E_INTERNAL, error.what());
    }
    return cli::kExitError;
}
