#include "server/store/postgres_error.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"

namespace stepcast::server {

namespace {

// Classes and single states, from https://www.postgresql.org/docs/15/errcodes-appendix.html.
constexpr std::string_view kUnavailable[] = {
    "08",     // the connection
    "25006",  // read-only: a standby, or told so
    "25P03",  // a transaction stood idle too long
    "28",     // who we are
    "3D000",  // no such database
    "40",     // serialization failure, deadlock, outcome of a commit unknown
    "42501",  // what we may do
    "42P01",  // a table was removed
    "53",     // disk full (53100), out of memory, too many connections
    "55P03",  // a lock is held by another
    "57",     // statement timeout, shut down, starting up
    "58",     // the machine below it: I/O errors
};
constexpr std::string_view kCorrupt[] = {"XX001", "XX002"};
constexpr std::string_view kTooLong[] = {"54000", "22001"};

template <size_t n>
bool IsOneOf(std::string_view sqlstate, const std::string_view (&starts)[n]) {
  return std::any_of(std::begin(starts), std::end(starts), [&](std::string_view start) {
    return sqlstate.substr(0, start.size()) == start;
  });
}

// One line, without the hints that follow a tab.
std::string OneLine(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const char plain = c == '\n' || c == '\t' ? ' ' : c;
    if (plain != ' ' || (!line.empty() && line.back() != ' ')) line += plain;
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

}  // namespace

absl::Status PostgresError(std::string_view sqlstate, std::string_view doing,
                           std::string_view said) {
  const std::string state(sqlstate);
  const std::string where = state.empty() ? "" : absl::StrCat(" (PostgreSQL state ", state, ")");
  const std::string message =
      absl::StrCat("cannot ", std::string(doing), ": ", OneLine(said), where);
  ErrorDetails details;
  if (!state.empty()) details.metadata["sqlstate"] = state;
  if (state.empty() || IsOneOf(state, kUnavailable)) {
    details.reason = "STORE_UNAVAILABLE";
    details.retry_delay_ms = kRetryDelayMs;
    return MakeError(absl::StatusCode::kUnavailable, message, details);
  }
  if (IsOneOf(state, kCorrupt)) {
    details.reason = "STORE_CORRUPT";
    return MakeError(absl::StatusCode::kDataLoss, message, details);
  }
  if (IsOneOf(state, kTooLong)) {
    details.reason = "STORE_FULL";
    details.quota_subject = "postgres_value_bytes";
    return MakeError(absl::StatusCode::kResourceExhausted, message, details);
  }
  details.reason = "STORE_INTERNAL";
  return MakeError(absl::StatusCode::kInternal, message, details);
}

bool MayRunAgain(const absl::Status& status) {
  const ErrorDetails details = DetailsOf(status);
  const auto state = details.metadata.find("sqlstate");
  return state != details.metadata.end() && (state->second == "40001" || state->second == "40P01");
}

}  // namespace stepcast::server
