#include "client/cli/replay_text.h"

#include "absl/strings/str_format.h"

namespace stepcast::client {

std::string ReplayText(const ReplayReport& report) {
  const double change = report.replayed_step_seconds / report.recorded_step_seconds - 1;
  std::string text = absl::StrFormat("replay: one worker's step was recorded with %.4g ms, and takes %.4g ms in the model (%+.1f%%)\n",
                                     1e3 * report.recorded_step_seconds, 1e3 * report.replayed_step_seconds, 100 * change);
  if (report.fitted_transfer_seconds > 0) {
    absl::StrAppendFormat(&text, "        a cost of %.3g us a transfer would explain the rest: try --parsing-seconds %.3g\n",
                          1e6 * report.fitted_transfer_seconds, report.fitted_transfer_seconds);
  } else if (change > 0) {
    text += "        slower than recorded: computations overlapped in the recording, or its bandwidth was higher than the profile says\n";
  }
  return text;
}

}  // namespace stepcast::client
