// The stores of profiles and of operations, on one medium.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/app/server_options.h"
#include "server/base/clock.h"
#include "server/store/disk.h"
#include "server/store/operation_store.h"
#include "server/store/postgres_database.h"
#include "server/store/profile_store.h"
#include "server/store/sqlite_database.h"

namespace stepcast::server {

// Member order is lifetime.
struct Stores {
  // DISK_FULL while writes are refused for want of room on the disk.
  absl::Status CheckRoom() const;
  // Space of the disk below the stores; none where that is not known here.
  std::optional<DiskSpace> Space() const;

  std::unique_ptr<SqliteDatabase> database;    // null without one
  std::unique_ptr<PostgresDatabase> postgres;  // the same
  std::unique_ptr<ProfileStore> profiles;
  std::unique_ptr<OperationStore> operations;
  std::unique_ptr<ShardStore> shards;  // null where no other server is on the store
};

// Fails as the medium does. The clock is borrowed.
absl::StatusOr<Stores> OpenStores(const ServerOptions& options, const Clock& clock);

// The name of the medium, for people.
std::string StoreText(const ServerOptions& options);

// The backup and the restore of stepcastd's data, which it does instead of serving when it is asked
// to. Fails as BackUpSqlite and RestoreSqlite do.
absl::Status CopyData(const DataCopy& copy);

}  // namespace stepcast::server
