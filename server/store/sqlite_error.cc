#include "server/store/sqlite_error.h"

#include <sqlite3.h>

#include <string>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"

namespace stepcast::server {

namespace {

ErrorDetails Details(int code) { return {.metadata = {{"sqlite_code", absl::StrCat(code)}}}; }

}  // namespace

absl::Status SqliteError(int code, std::string_view doing) {
  const std::string message = absl::StrCat("cannot ", std::string(doing), ": ",
                                           sqlite3_errstr(code), " (SQLite code ", code, ")");
  ErrorDetails details = Details(code);
  if (code == SQLITE_IOERR_CORRUPTFS) code = SQLITE_CORRUPT;
  switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
      return absl::OkStatus();
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_PROTOCOL:
    case SQLITE_NOMEM:
    case SQLITE_INTERRUPT:
      details.reason = "STORE_UNAVAILABLE";
      details.retry_delay_ms = kRetryDelayMs;
      return MakeError(absl::StatusCode::kUnavailable, message, details);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      details.reason = "STORE_CORRUPT";
      return MakeError(absl::StatusCode::kDataLoss, message, details);
    case SQLITE_TOOBIG:
      details.reason = "STORE_FULL";
      details.quota_subject = "sqlite_value_bytes";
      return MakeError(absl::StatusCode::kResourceExhausted, message, details);
    default:
      details.reason = "STORE_INTERNAL";
      return MakeError(absl::StatusCode::kInternal, message, details);
  }
}

}  // namespace stepcast::server
