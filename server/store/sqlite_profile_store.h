// The profile store on disk, and the rows of its database.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/base/clock.h"
#include "server/store/profile_store.h"
#include "server/store/sqlite_connection.h"
#include "server/store/sqlite_database.h"

namespace stepcast::server {

// The rows of the profile database: one function for each thing the store reads or writes.
//
// Each runs within the caller's transaction. Errors are those of SqliteError.
// Threads: those of the connection.

absl::StatusOr<std::optional<ProfileSummary>> FindProfile(SqliteConnection& connection,
                                                          const std::string& id);
// The content of a profile that is there. DATA_LOSS, reason PROFILE_CORRUPT, unless the bytes have
// the checksum they had when inserted.
absl::StatusOr<std::string> ReadContent(SqliteConnection& connection,
                                        const ProfileSummary& summary);
absl::Status InsertProfile(SqliteConnection& connection, const ProfileSummary& summary,
                           const std::string& content);
absl::Status DeleteProfile(SqliteConnection& connection, const std::string& id);
// Cost: O(profiles passed over + those returned), since the filter is applied to each.
absl::StatusOr<ProfilePage> ListProfiles(SqliteConnection& connection, const ListQuery& query);

absl::StatusOr<TotalsRow> ReadTotals(SqliteConnection& connection);
// The owner's totals. REQUIRES: it has a name.
absl::StatusOr<TotalsRow> ReadOwned(SqliteConnection& connection, const std::string& owner);

absl::StatusOr<std::optional<RequestRow>> FindRequest(SqliteConnection& connection,
                                                      const std::string& request_id);
// Forgets the oldest ones beyond `max_request_ids`.
absl::Status InsertRequest(SqliteConnection& connection, const std::string& request_id,
                           const RequestRow& row, int64_t max_request_ids);

struct SqliteProfileStoreOptions {
  std::string directory;  // created if missing
  StoreLimits limits;
  int readers = 2;             // connections for reading. REQUIRES: above 0
  int busy_timeout_ms = 5000;  // wait for somebody else's lock on the database, a backup's for one
};

// The profile store on disk: an SQLite database in a directory of its own.
//
// Durability: a Put, Replace or Delete that returned OK survives the end of the process and of the
// machine (write-ahead log, synchronous=FULL). Cost: each of them is one wait for the disk; they
// take turns. Get, GetSummary and List do not wait for them, only for one of the readers. Threads:
// safe. One process at a time: the directory is locked. Failure: beside those of ProfileStore,
// DATA_LOSS, reason STORE_CORRUPT, where the database file is damaged.
class SqliteProfileStore final : public ProfileStore {
 public:
  static constexpr const char* kDatabaseFile = SqliteDatabase::kFile;

  // In a database that it shares. Borrows both.
  SqliteProfileStore(SqliteDatabase& database, const StoreLimits& limits, const Clock& clock)
      : database_(database), limits_(limits), clock_(clock) {}
  // In a database of its own; fails as SqliteDatabase::Open does. The clock is borrowed.
  static absl::StatusOr<std::unique_ptr<SqliteProfileStore>> Open(
      const SqliteProfileStoreOptions& options, const Clock& clock);

  absl::StatusOr<ProfileSummary> Put(const StoredProfile& profile,
                                     const std::string& request_id) override;
  absl::StatusOr<ProfileSummary> Replace(const StoredProfile& profile,
                                         const ReplaceTerms& terms) override;
  absl::StatusOr<StoredProfile> Get(const std::string& id) override;
  absl::StatusOr<ProfileSummary> GetSummary(const std::string& id) override;
  absl::StatusOr<ProfilePage> List(const ListQuery& query) override;
  absl::Status Delete(const std::string& id, const std::string& etag) override;
  void SetLimits(const StoreLimits& limits) override { limits_.Set(limits); }
  absl::Status Check() override;
  uint64_t Generation() const override { return generation_; }

 private:
  // The profile that an earlier request with this id stored; none: it is new.
  absl::StatusOr<std::optional<ProfileSummary>> Replay(SqliteConnection& connection,
                                                       const ProfileSummary& summary,
                                                       const WriteTerms& terms);
  absl::StatusOr<ProfileSummary> Write(const StoredProfile& profile, const WriteTerms& terms);
  absl::StatusOr<ProfileSummary> WriteOn(SqliteDatabase::Writing& writing,
                                         const StoredProfile& profile, const WriteTerms& terms);
  absl::Status DeleteOn(SqliteDatabase::Writing& writing, const std::string& id,
                        const std::string& etag);
  // In place of what is there, if anything is.
  absl::StatusOr<ProfileSummary> WriteNew(SqliteConnection& connection,
                                          const StoredProfile& profile,
                                          const std::optional<ProfileSummary>& there);
  absl::Status CheckQuota(SqliteConnection& connection, const std::string& owner,
                          const TotalsRow& growth);

  std::unique_ptr<SqliteDatabase> owned_;  // null: borrowed
  SqliteDatabase& database_;
  ReloadedLimits limits_;
  const Clock& clock_;
  std::atomic<uint64_t> generation_{0};
};

}  // namespace stepcast::server
