// The command line of stepcastd: flags, and for each an environment variable, STEPCAST_ and its name in capitals. A flag counts more.
#pragma once

#include <string>
#include <variant>

#include "absl/status/statusor.h"

#include "server/app/server_options.h"

namespace stepcast::server {

// Text that was asked for instead of a server: --help or --version.
struct PrintText {
  std::string text;
};

// INVALID_ARGUMENT, reason FLAG_INVALID, with what is wrong.
absl::StatusOr<std::variant<ServerOptions, PrintText>> ParseCommandLine(int argc, const char* const* argv);

}  // namespace stepcast::server
