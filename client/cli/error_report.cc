#include "client/cli/error_report.h"

#include <string_view>

#include "absl/strings/str_cat.h"
#include "client/cli/measure_text.h"

#include "stepcast/error_details.h"

namespace stepcast::client {

namespace {

std::string Printable(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = ' ';
  }
  return result;
}

void Line(std::string& report, const std::string& left, const std::string& right) {
  absl::StrAppend(&report, "  ", Printable(left), left.empty() ? "" : ": ", Printable(right), "\n");
}

}  // namespace

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
