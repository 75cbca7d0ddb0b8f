// The configuration of stepcastd: one table of settings, which flags, environment and configuration
// file share.
//
// Each setting is a flag, a variable of the environment, STEPCAST_ and its name in capitals, and a
// key of the file that --config names. A flag counts more than its variable, that more than the
// file, that more than the default.
#pragma once

#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/app/server_options.h"

namespace stepcast::server {

// Text that was asked for instead of a server: --help, --version, --check-config or --print-config.
struct PrintText {
  std::string text;
};

// A copy that was asked for instead of a server: --backup-to or --restore-from.
struct DataCopy {
  std::string data_dir;
  std::string backup_to;     // empty: restore
  std::string restore_from;  // empty: back up
};

// Reads the environment and the file anew at each call. INVALID_ARGUMENT, reason FLAG_INVALID or
// CONFIG_INVALID, with all that is wrong.
absl::StatusOr<std::variant<ServerOptions, PrintText, DataCopy>> ParseCommandLine(
    int argc, const char* const* argv);

// The same for a server only: INVALID_ARGUMENT, reason FLAG_INVALID, where something else was asked
// for.
absl::StatusOr<ServerOptions> ParseOptions(int argc, const char* const* argv);

}  // namespace stepcast::server
