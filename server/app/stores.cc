#include "server/app/stores.h"

#include <chrono>
#include <thread>
#include <utility>

#include "server/store/memory_stores.h"
#include "server/store/operation_store.h"
#include "server/store/postgres_operation_store.h"
#include "server/store/postgres_profile_store.h"
#include "server/store/sqlite_backup.h"
#include "server/store/sqlite_operation_store.h"
#include "server/store/sqlite_profile_store.h"

namespace stepcast::server {

namespace {

// Besides the pool for the store, what takes operations, what waits for them, and each that is
// computed ask it.
constexpr int kOperationThreads = 2;
constexpr auto kBetweenAttempts = std::chrono::milliseconds(200);

OperationLimits LimitsOf(const OperationOptions& options) {
  return {.max_open_operations = options.max_open,
          .max_operation_store_bytes = options.max_store_bytes,
          .max_done_operations = options.max_done,
          .retention_ns = static_cast<int64_t>(options.retention_seconds * 1e9),
          .max_attempts = options.max_attempts};
}

absl::StatusOr<Stores> OpenMemory(const ServerOptions& options, const Clock& clock) {
  Stores stores;
  stores.profiles = std::make_unique<MemoryProfileStore>(options.store_limits, clock);
  stores.operations = std::make_unique<MemoryOperationStore>(LimitsOf(options.operations), clock);
  return stores;
}

absl::StatusOr<Stores> OpenSqlite(const ServerOptions& options, const Clock& clock) {
  absl::StatusOr<std::unique_ptr<SqliteDatabase>> database =
      SqliteDatabase::Open({.directory = options.data_dir, .readers = options.store_threads});
  if (!database.ok()) return database.status();
  Stores stores;
  stores.database = *std::move(database);
  stores.profiles =
      std::make_unique<SqliteProfileStore>(*stores.database, options.store_limits, clock);
  absl::StatusOr<std::unique_ptr<SqliteOperationStore>> operations =
      SqliteOperationStore::Open(*stores.database, LimitsOf(options.operations), clock);
  if (!operations.ok()) return operations.status();
  stores.operations = *std::move(operations);
  return stores;
}

absl::StatusOr<Stores> TryPostgres(const ServerOptions& options, const Clock& clock) {
  absl::StatusOr<std::unique_ptr<PostgresDatabase>> database = PostgresDatabase::Open(
      {.connection = {.conninfo = options.postgres},
       .connections = options.store_threads + kOperationThreads + options.operations.max_running});
  if (!database.ok()) return database.status();
  absl::StatusOr<std::unique_ptr<PostgresProfileStore>> profiles =
      PostgresProfileStore::Open(**database, options.store_limits, clock);
  if (!profiles.ok()) return profiles.status();
  Stores stores;
  stores.postgres = *std::move(database);
  stores.profiles = *std::move(profiles);
  stores.operations =
      std::make_unique<PostgresOperationStore>(*stores.postgres, LimitsOf(options.operations));
  stores.shards = std::make_unique<PostgresShardStore>(*stores.postgres);
  return stores;
}

// A database may go away between any two of the connections that its stores begin with, so all of
// it is tried again.
absl::StatusOr<Stores> OpenPostgres(const ServerOptions& options, const Clock& clock) {
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(options.store_wait_seconds);
  absl::StatusOr<Stores> stores = TryPostgres(options, clock);
  while (absl::IsUnavailable(stores.status()) && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kBetweenAttempts);
    stores = TryPostgres(options, clock);
  }
  return stores;
}

}  // namespace

absl::StatusOr<Stores> OpenStores(const ServerOptions& options, const Clock& clock) {
  switch (options.store) {
    case StoreKind::kMemory:
      return OpenMemory(options, clock);
    case StoreKind::kSqlite:
      return OpenSqlite(options, clock);
    case StoreKind::kPostgres:
      return OpenPostgres(options, clock);
  }
  return absl::InternalError("no such kind of store");
}

absl::Status Stores::CheckRoom() const {
  if (database != nullptr) return database->CheckRoom();
  return postgres != nullptr ? postgres->connections().CheckRoom() : absl::OkStatus();
}

std::optional<DiskSpace> Stores::Space() const {
  return database == nullptr ? std::nullopt : database->Space();
}

std::string StoreText(const ServerOptions& options) {
  if (options.store == StoreKind::kMemory) return "memory";
  return options.store == StoreKind::kPostgres ? "postgres" : options.data_dir;
}

absl::Status CopyData(const DataCopy& copy) {
  return copy.restore_from.empty() ? BackUpSqlite(copy.data_dir, copy.backup_to)
                                   : RestoreSqlite(copy.restore_from, copy.data_dir);
}

}  // namespace stepcast::server
