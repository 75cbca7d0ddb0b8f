// The tables of Stepcast in a PostgreSQL database, all named stepcast_*, and how older ones become
// today's.
//
// They are made in the first schema of the connection's search_path. Several processes may bring
// one database forward at the same time.
#pragma once

#include <span>

#include "absl/status/status.h"

#include "server/store/postgres_connection.h"

namespace stepcast::server {

// Scripts, each of which leads from the version that is its index to the next. Append only: a
// released one never changes.
std::span<const char* const> PostgresMigrations();

// Leaves the database at version migrations.size(), each step in a transaction of its own; only
// reads if it is there already. FAILED_PRECONDITION, reason STORE_SCHEMA_TOO_NEW, if it is beyond;
// reason STORE_FOREIGN if it has tables of these names that are not ours. Both leave it untouched.
absl::Status MigratePostgres(PostgresConnection& connection,
                             std::span<const char* const> migrations);

}  // namespace stepcast::server
