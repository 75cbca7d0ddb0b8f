#include "client/cli/session.h"

#include <langinfo.h>
#include <locale.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/texts/characters.h"
#include "client/cli/texts/table.h"

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

std::string TextOf(const FieldViolation& violation) {
  return absl::StrCat(violation.field, violation.field.empty() ? "" : ": ", violation.description);
}

// True if the message says what the violation does, and at most that there are more. Both may have
// been cut, the message by a server at 512 bytes.
bool Repeats(std::string_view message, const FieldViolation& violation) {
  constexpr size_t kShortestCut = 500;
  const std::string said = TextOf(violation);
  const size_t size = std::min(said.size(), message.size());
  if (message.substr(0, size) != std::string_view(said).substr(0, size)) return false;
  const std::string_view rest = message.substr(size);
  return size >= kShortestCut ||
         (size == said.size() && (rest.empty() || rest.starts_with(" (and ")));
}

// Advice on an error, by its reason.
struct Remedy {
  std::string_view reason;
  std::string_view text;
};
constexpr Remedy kRemedies[] = {
    {"SERVER_UNREACHABLE",
     "is the server running? --server HOST:PORT names another one; profiles in files need none"},
    {"SERVER_SPEAKS_TLS",
     "--tls-ca FILE speaks TLS with the authority in FILE believed, --tls with those that this "
     "system believes"},
    {"SERVER_SPEAKS_NO_TLS",
     "leave out --tls, --tls-ca and --tls-cert (and STEPCAST_TLS_CA), or have it serve over TLS: "
     "stepcastd --tls-cert, --tls-key"},
    {"SERVER_SPEAKS_NO_GRPC",
     "--server HOST:PORT names the port of its --listen, by default 50051"},
    {"SERVER_CERTIFICATE_UNTRUSTED",
     "--tls-ca FILE believes the authority in FILE (PEM), which must be the one that signed the "
     "server's certificate"},
    {"SERVER_CERTIFICATE_EXPIRED",
     "whoever runs the server must renew what its --tls-cert names; or is this clock wrong?"},
    {"SERVER_NAME_MISMATCH", "--server NAME:PORT with a name that is in the certificate"},
    {"CLIENT_CERTIFICATE_MISSING", "--tls-cert FILE and --tls-key FILE show the server one"},
    {"CLIENT_CERTIFICATE_REFUSED",
     "--tls-cert must be signed by the authority of the server's --tls-client-ca, and be good "
     "today"},
    {"CLIENT_CREDENTIALS_INVALID", "--tls-ca, --tls-cert and --tls-key name files in PEM"},
    {"TOKEN_NEEDS_TLS", "--tls or --tls-ca FILE speaks TLS, without which no token leaves here"},
    {"CREDENTIALS_MISSING",
     "--token-file FILE shows the server a token, --tls-cert and --tls-key a certificate"},
    {"TOKEN_UNKNOWN", "--token-file FILE must hold a token of the server's --tokens"},
};

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
  console.err << ErrorReport(status, typed);
  const ErrorDetails details = GetErrorDetails(status);
  // A server of which nothing is known, and which no call reached, may not be there.
  const std::string_view reason = !local && absl::IsUnavailable(status) && details.reason.empty()
                                      ? "SERVER_UNREACHABLE"
                                      : std::string_view(details.reason);
  for (const Remedy& remedy : kRemedies) {
    if (remedy.reason == reason) console.err << "hint: " << remedy.text << "\n";
  }
  // A server that could say more would have; JOB_NOT_DONE is about waiting alone.
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

bool Session::Write(const std::string& path, const std::string& content) {
  if (path.empty()) return true;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << content;
  file.close();
  return !file.fail();
}

std::string ErrorReport(const absl::Status& status, const TypedFlags& typed) {
  ErrorDetails details = GetErrorDetails(status);
  std::string message(status.message());
  const auto left_out = details.metadata.find("violations_left_out");
  const bool has_more = left_out != details.metadata.end();
  const bool repeats = !details.violations.empty() && Repeats(message, details.violations.front());
  for (FieldViolation& violation : details.violations) {
    const bool is_missing =
        !typed.empty() && (absl::StartsWith(violation.description, "unset, ") ||
                           absl::StartsWith(violation.description, "not given, ") ||
                           absl::StartsWith(violation.description, "required, "));
    violation.field = is_missing ? FlagToGive(violation.field) : FieldText(violation.field, typed);
    violation.description = DescriptionText(violation.description, typed);
  }
  if (repeats && details.violations.size() == 1 && !has_more) {
    message = TextOf(details.violations.front());
    details.violations.clear();
  } else if (repeats) {
    message = absl::StrCat(details.violations.size(), has_more ? " faults and more:" : " faults:");
  }
  std::string report = absl::StrCat("error: ", absl::StatusCodeToString(status.code()), ": ",
                                    details.reason.empty() ? "" : Printable(details.reason) + ": ",
                                    Printable(message), "\n");
  for (const FieldViolation& violation : details.violations)
    Line(report, violation.field, violation.description);
  if (has_more) Line(report, "", "and " + left_out->second + " more");
  for (const QuotaViolation& quota : details.quota_violations)
    Line(report, "limit " + quota.subject, quota.description);
  if (details.resource && !details.resource->name.empty())
    Line(report, details.resource->type, details.resource->name);
  if (details.retry_delay) Line(report, "try again in", DurationText(*details.retry_delay));
  return report;
}

}  // namespace stepcast::client
