#include "server/app/stores.h"

#include <utility>

#include "server/store/memory_profile_store.h"
#include "server/store/postgres_profile_store.h"
#include "server/store/sqlite_profile_store.h"

namespace stepcast::server {

namespace {

absl::StatusOr<Stores> OpenMemory(const ServerOptions& options, const Clock& clock) {
  Stores stores;
  stores.profiles = std::make_unique<MemoryProfileStore>(options.store_limits, clock);
  return stores;
}

absl::StatusOr<Stores> OpenSqlite(const ServerOptions& options, const Clock& clock) {
  absl::StatusOr<std::unique_ptr<SqliteDatabase>> database = SqliteDatabase::Open({.directory = options.data_dir, .readers = options.store_threads});
  if (!database.ok()) return database.status();
  Stores stores;
  stores.database = *std::move(database);
  stores.profiles = std::make_unique<SqliteProfileStore>(*stores.database, options.store_limits, clock);
  return stores;
}

absl::StatusOr<Stores> OpenPostgres(const ServerOptions& options, const Clock& clock) {
  absl::StatusOr<std::unique_ptr<PostgresDatabase>> database = PostgresDatabase::Open(
      {.connection = {.conninfo = options.postgres}, .connections = options.store_threads, .wait_seconds = options.store_wait_seconds});
  if (!database.ok()) return database.status();
  absl::StatusOr<std::unique_ptr<PostgresProfileStore>> profiles = PostgresProfileStore::Open(**database, options.store_limits, clock);
  if (!profiles.ok()) return profiles.status();
  Stores stores;
  stores.postgres = *std::move(database);
  stores.profiles = *std::move(profiles);
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

std::string StoreText(const ServerOptions& options) {
  if (options.store == StoreKind::kMemory) return "memory";
  return options.store == StoreKind::kPostgres ? "postgres" : options.data_dir;
}

}  // namespace stepcast::server
