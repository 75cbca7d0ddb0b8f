#include "client/cli/session.h"

#include "client/cli/error_report.h"
#include "client/cli/measure_text.h"

#include "stepcast/error_details.h"

namespace stepcast::client {

ExitCode Session::Refused(const absl::Status& status) const {
  console.err << ErrorReport(status);
  if (!local && absl::IsUnavailable(status)) {
    console.err << "hint: is the server running? --server HOST:PORT names another one; profiles in "
                   "files need none\n";
  }
  // A server that could say more would have; JOB_NOT_DONE is about waiting alone.
  const ErrorDetails details = GetErrorDetails(status);
  if (absl::IsDeadlineExceeded(status) && details.metadata.count("expected_operations") == 0 &&
      details.reason != "JOB_NOT_DONE") {
    console.err
        << "hint: no answer came within " << DurationText(options.timeout)
        << " (--timeout); allow more, ask for fewer --workers or --steps or a coarser --precision"
        << (local ? "\n" : ", or have it computed as a job: stepcast job start\n");
  }
  return ExitCode::kRefused;
}

ExitCode Session::Misused(std::string_view why) const {
  console.err << "error: " << why << "\nRun with --help for more information.\n";
  return ExitCode::kMisused;
}

}  // namespace stepcast::client
