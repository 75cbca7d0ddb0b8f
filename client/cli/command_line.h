// The program `stepcast`, from arguments to an exit code, and its help.
#pragma once

#include <string>
#include <vector>

#include "client/cli/session.h"

namespace CLI {
class App;
}  // namespace CLI

namespace stepcast::client {

// Parses, runs the chosen command, and reports. Reads the environment (STEPCAST_SERVER).
ExitCode RunCommandLine(int argc, const char* const* argv, const Console& console);

// Adds --help-all to `program`, and makes its help, and that of every command that is added to it
// later, in lines of at most 100 columns. --help of a command shows its own flags, those of its
// shared groups (scenario, all-reduce, simulation) that most questions need, and how many more
// there are; --help-all shows all of them. Examples are those of the command alone.
void SetHelp(CLI::App& program);

// The commands below a command, in the order of its help.
std::vector<std::string> CommandNames(const CLI::App& command);

}  // namespace stepcast::client
