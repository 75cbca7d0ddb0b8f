// The error of the store that stands for a failure of PostgreSQL.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace stepcast::server {

// By the SQLSTATE, of which an empty one stands for a lost or refused connection:
//   UNAVAILABLE, reason STORE_UNAVAILABLE: the database is away, full, read-only, too slow or busy
//     with others, or does not let us in
//   DATA_LOSS, reason STORE_CORRUPT: it says that its files are damaged
//   RESOURCE_EXHAUSTED, reason STORE_FULL: a value is longer than it takes
//   INTERNAL, reason STORE_INTERNAL: anything else, which is a mistake of ours
// `doing` completes "cannot ..."; `said` is the server's or the library's text. The state is in the
// metadata as `sqlstate`.
absl::Status PostgresError(std::string_view sqlstate, std::string_view doing,
                           std::string_view said);

// True if the transaction failed only because of another one and may be run again.
bool MayRunAgain(const absl::Status& status);

}  // namespace stepcast::server
