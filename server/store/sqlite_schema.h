// The tables of the profile database, and how older ones become today's.
#pragma once

#include <span>

#include "absl/status/status.h"

#include "server/store/sqlite_connection.h"

namespace stepcast::server {

// In the header of every database file of ours ("STPC"), where file(1) and we look for it.
inline constexpr int kSqliteApplicationId = 0x53545043;
// The version that this program writes; in PRAGMA user_version. Version n is what the first n
// migrations make.
inline constexpr int kSchemaVersion = 5;

// Scripts, each of which leads from the version that is its index to the next. Append only: a
// released one never changes.
std::span<const char* const> SchemaMigrations();

// OK if the database is one of ours, of a version up to today's. Fails as MigrateSchema does; an
// empty one is foreign.
absl::Status CheckSchema(SqliteConnection& connection);

// Leaves the database at version migrations.size(), each step in a transaction of its own, and does
// nothing if it is there already. FAILED_PRECONDITION, reason STORE_SCHEMA_TOO_NEW, if it is
// beyond; reason STORE_FOREIGN if the file is another program's. Both leave it untouched.
absl::Status MigrateSchema(SqliteConnection& connection, std::span<const char* const> migrations);

}  // namespace stepcast::server
