#include "server/store/postgres_database.h"

#include <chrono>
#include <thread>

#include "server/store/postgres_schema.h"

namespace stepcast::server {

namespace {

constexpr auto kBetweenAttempts = std::chrono::milliseconds(200);
// A migration may rewrite a table.
constexpr int kMigrationTimeoutMs = 600'000;

absl::Status Migrate(PostgresConnectionOptions options) {
  options.statement_timeout_ms = kMigrationTimeoutMs;
  const absl::StatusOr<std::unique_ptr<PostgresConnection>> connection =
      PostgresConnection::Open(options);
  return connection.ok() ? MigratePostgres(**connection, PostgresMigrations())
                         : connection.status();
}

}  // namespace

absl::StatusOr<std::unique_ptr<PostgresDatabase>> PostgresDatabase::Open(
    const PostgresDatabaseOptions& options) {
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(options.wait_seconds);
  absl::Status status = Migrate(options.connection);
  while (absl::IsUnavailable(status) && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kBetweenAttempts);
    status = Migrate(options.connection);
  }
  if (!status.ok()) return status;
  return std::unique_ptr<PostgresDatabase>(new PostgresDatabase(options));
}

}  // namespace stepcast::server
