#include "client/cli/session.h"

#include <langinfo.h>
#include <locale.h>
#include <sys/ioctl.h>

#include "absl/strings/str_cat.h"
#include "client/cli/characters.h"
#include "client/cli/measure_text.h"

#include "stepcast/error_details.h"

namespace stepcast::client {

namespace {

std::string Printable(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  return Escaped(line);
}

void Line(std::string& report, const std::string& left, const std::string& right) {
  absl::StrAppend(&report, "  ", Printable(left), left.empty() ? "" : ": ", Printable(right), "\n");
}

}  // namespace

Terminal TerminalOf(int file) {
  Terminal terminal;
  winsize size{};
  if (ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) terminal.columns = size.ws_col;
  if (const locale_t locale = newlocale(LC_CTYPE_MASK, "", nullptr); locale != nullptr) {
    terminal.utf8 = std::string_view(nl_langinfo_l(CODESET, locale)) == "UTF-8";
    freelocale(locale);
  }
  return terminal;
}

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
  console.err << "error: " << Printable(why) << "\nRun with --help for more information.\n";
  return ExitCode::kMisused;
}

std::string ErrorReport(const absl::Status& status) {
  const ErrorDetails details = GetErrorDetails(status);
  std::string report =
      absl::StrCat("error: ", absl::StatusCodeToString(status.code()), ": ",
                   details.reason.empty() ? "" : Printable(details.reason) + ": ",
                   Printable({status.message().data(), status.message().size()}), "\n");
  for (const FieldViolation& violation : details.violations)
    Line(report, violation.field, violation.description);
  if (const auto left_out = details.metadata.find("violations_left_out");
      left_out != details.metadata.end()) {
    Line(report, "", "and " + left_out->second + " more");
  }
  for (const QuotaViolation& quota : details.quota_violations)
    Line(report, "limit " + quota.subject, quota.description);
  if (details.resource && !details.resource->name.empty())
    Line(report, details.resource->type, details.resource->name);
  if (details.retry_delay) Line(report, "try again in", DurationText(*details.retry_delay));
  return report;
}

}  // namespace stepcast::client
