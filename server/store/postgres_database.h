// A PostgreSQL database with today's tables, and the connections of one process to it.
//
// Lifetime: what keeps something in it borrows it.
// Other processes may use the same database at the same time.
// Threads: safe.
#pragma once

#include <memory>

#include "absl/status/statusor.h"

#include "server/store/postgres_connection.h"
#include "server/store/postgres_connection_pool.h"

namespace stepcast::server {

struct PostgresDatabaseOptions {
  PostgresConnectionOptions connection;
  int connections = 4;      // that work at one time. REQUIRES: above 0
  double wait_seconds = 0;  // to go on trying while it is away
};

class PostgresDatabase {
 public:
  // Creates the tables or brings them to today's schema.
  // UNAVAILABLE, reason STORE_UNAVAILABLE, names the host and why it cannot be reached; else what
  // CheckConninfo and MigratePostgres fail with.
  static absl::StatusOr<std::unique_ptr<PostgresDatabase>> Open(
      const PostgresDatabaseOptions& options);

  PostgresConnectionPool& connections() { return connections_; }
  // For a connection apart from those.
  const PostgresConnectionOptions& connection_options() const { return connection_options_; }

 private:
  explicit PostgresDatabase(const PostgresDatabaseOptions& options)
      : connection_options_(options.connection),
        connections_({.connection = options.connection, .connections = options.connections}) {}

  const PostgresConnectionOptions connection_options_;
  PostgresConnectionPool connections_;
};

}  // namespace stepcast::server
