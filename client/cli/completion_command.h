// The command that prints a script for a shell, which completes all commands.
#pragma once

#include <CLI/App.hpp>
#include <memory>
#include <string>

#include "client/cli/command.h"

namespace stepcast::client {

// A script for bash, made of `program`'s commands and options, those left out that its help leaves
// out. Sourced, it completes `program.get_name()`: commands, options, values where a type lists
// them (`a|b|c`, or CLI::IsMember), and files where a type or an argument's name says FILE.
std::string BashCompletion(const CLI::App& program);

// `completion bash`.
std::unique_ptr<Command> MakeCompletionCommand();

}  // namespace stepcast::client
