#include "client/cli/session.h"

#include "client/cli/error_report.h"

namespace stepcast::client {

ExitCode Session::Refused(const absl::Status& status) const {
  console.err << ErrorReport(status);
  if (!local && absl::IsUnavailable(status)) {
    console.err << "hint: is the server running? --server HOST:PORT names another one, --local works on files without one\n";
  }
  return ExitCode::kRefused;
}

ExitCode Session::Misused(std::string_view why) const {
  console.err << "error: " << why << "\nRun with --help for more information.\n";
  return ExitCode::kMisused;
}

}  // namespace stepcast::client
