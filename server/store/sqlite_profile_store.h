// The profile store on disk: an SQLite database in a directory of its own.
//
// Durability: a Put or Delete that returned OK survives the end of the process and of the machine (write-ahead log, synchronous=FULL).
// Cost: a Put or Delete is one wait for the disk; they take turns. Get, GetSummary and List do not wait for them, only for one of the readers.
// Threads: safe. One process at a time: the directory is locked.
// Failure: beside those of ProfileStore, DATA_LOSS, reason STORE_CORRUPT, where the database file is damaged.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/store/data_directory.h"
#include "server/store/profile_store.h"
#include "server/store/sqlite_connection_pool.h"
#include "server/store/store_limits.h"

namespace stepcast::server {

struct SqliteProfileStoreOptions {
  std::string directory;  // created if missing
  StoreLimits limits;
  int readers = 2;             // connections for reading. REQUIRES: above 0
  int busy_timeout_ms = 5000;  // wait for somebody else's lock on the database, a backup's for one
};

class SqliteProfileStore final : public ProfileStore {
 public:
  static constexpr char kDatabaseFile[] = "profiles.sqlite3";

  // Takes the directory, creates the database or brings it to today's schema. The clock is borrowed.
  // Errors name the directory: those of DataDirectory::Own, MigrateSchema and SqliteError.
  static absl::StatusOr<std::unique_ptr<SqliteProfileStore>> Open(const SqliteProfileStoreOptions& options, const Clock& clock);

  absl::StatusOr<ProfileSummary> Put(const StoredProfile& profile, const std::string& request_id) override;
  absl::StatusOr<StoredProfile> Get(const std::string& id) override;
  absl::StatusOr<ProfileSummary> GetSummary(const std::string& id) override;
  absl::StatusOr<ProfilePage> List(const ListQuery& query) override;
  absl::Status Delete(const std::string& id, const std::string& etag) override;
  // Reads, and looks whether the file is still in its place; does not try to write.
  absl::Status Check() override;
  uint64_t Generation() const override { return generation_; }

 private:
  struct Connections {
    std::unique_ptr<SqliteConnection> writer;
    std::vector<std::unique_ptr<SqliteConnection>> readers;
  };

  static absl::StatusOr<Connections> Connect(const DataDirectory& directory, const SqliteProfileStoreOptions& options);
  SqliteProfileStore(DataDirectory directory, const StoreLimits& limits, const Clock& clock, Connections connections);

  // What an earlier request with this id stored; none: it is new.
  absl::StatusOr<std::optional<ProfileSummary>> Replay(const ProfileSummary& summary, const std::string& request_id) STEPCAST_REQUIRES(mutex_);
  absl::StatusOr<ProfileSummary> PutNew(const StoredProfile& profile) STEPCAST_REQUIRES(mutex_);
  absl::Status CheckQuota(int64_t new_bytes) STEPCAST_REQUIRES(mutex_);
  absl::Status CheckFile() STEPCAST_REQUIRES(mutex_);

  const DataDirectory directory_;  // first, so that it is given up last
  const StoreLimits limits_;
  const Clock& clock_;
  std::atomic<uint64_t> generation_{0};
  Mutex mutex_;
  const std::unique_ptr<SqliteConnection> writer_ STEPCAST_PT_GUARDED_BY(mutex_);
  SqliteConnectionPool readers_;
};

}  // namespace stepcast::server
