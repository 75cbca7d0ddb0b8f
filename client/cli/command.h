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
  // REQUIRES, here and below: the parse chose it. Whether all that it is about is in files, so that
  // it is answered in this process where nobody has named a server.
  virtual bool NeedsNoServer() const { return false; }
  virtual ExitCode Run(const Session& session) const = 0;
};

}  // namespace stepcast::client
