// The error of the store that stands for an SQLite result code.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace stepcast::server {

// OK for SQLITE_OK, SQLITE_ROW and SQLITE_DONE. Otherwise, by the code's primary part:
//   UNAVAILABLE, reason STORE_UNAVAILABLE: the medium or another process is in the way: disk full,
//     I/O error, read-only, busy, cannot open
//   DATA_LOSS, reason STORE_CORRUPT: the file is damaged or no database
//   RESOURCE_EXHAUSTED, reason STORE_FULL: a value is longer than SQLite takes
//   INTERNAL, reason STORE_INTERNAL: anything else, which is a mistake of ours
// `doing` completes "cannot ...". The code is in the metadata as `sqlite_code`.
absl::Status SqliteError(int code, std::string_view doing);

}  // namespace stepcast::server
