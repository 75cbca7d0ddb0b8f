// What every command is run with.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "client/cli/console.h"
#include "client/cli/exit_code.h"

#include "stepcast/client.h"

namespace stepcast::client {

enum class OutputFormat { kTable, kJson };

struct Session {
  Client client;
  ClientOptions options = {};  // the client's
  // How long to wait for what takes as long as it takes.
  std::chrono::nanoseconds patience = std::chrono::nanoseconds::max();
  bool local = false;  // profiles are files, and there is no store
  OutputFormat output = OutputFormat::kTable;
  const Console& console;

  // Writes one of both: the reply as `json` or what `table` makes of it.
  template <typename Table>
  ExitCode Answer(const std::string& json, const Table& table) const {
    console.out << (output == OutputFormat::kJson ? json : table());
    return console.out.flush() ? ExitCode::kDone
                               : Refused(absl::DataLossError("the answer could not be written"));
  }
  // Reports why the service did not answer.
  ExitCode Refused(const absl::Status& status) const;
  // Reports what is wrong with the command.
  ExitCode Misused(std::string_view why) const;
};

}  // namespace stepcast::client
