// One command of the program: its flags, and what it does with them.
#pragma once

#include <CLI/App.hpp>

#include "client/cli/exit_code.h"
#include "client/cli/session.h"

namespace stepcast::client {

class Command {
 public:
  virtual ~Command() = default;

  // Adds itself below `parent`, and returns what it added. The command outlives the parse.
  virtual CLI::App* Declare(CLI::App& parent) = 0;
  // REQUIRES: the parse chose it.
  virtual ExitCode Run(const Session& session) const = 0;
};

}  // namespace stepcast::client
