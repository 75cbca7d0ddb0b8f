// The profile store in a PostgreSQL database, its rows there, and the generation by which copies
// stay right.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/store/postgres_connection.h"
#include "server/store/postgres_database.h"
#include "server/store/profile_store.h"

namespace stepcast::server {

// The generation of the profiles in a PostgreSQL database: a number that changes whenever a profile
// was deleted, by whichever process.
//
// A thread with a connection of its own is notified of deletions, and asks every second how many
// there have been, so that none is missed. For kTrustNs after a question that was answered the
// number stands still between deletions. While there is no answer, because the database is away,
// hangs or is cut off, no number is given twice, so nothing kept is trusted; the thread connects
// again by itself. Threads: safe. Cost: Current is two atomics and the clock.
class PostgresGeneration {
 public:
  static constexpr int64_t kTrustNs = 4'000'000'000;

  // The first question is answered when it returns. The clock is borrowed.
  static absl::StatusOr<std::unique_ptr<PostgresGeneration>> Follow(
      const PostgresConnectionOptions& options, const Clock& clock);
  ~PostgresGeneration();
  PostgresGeneration(const PostgresGeneration&) = delete;
  PostgresGeneration& operator=(const PostgresGeneration&) = delete;

  uint64_t Current() const;
  // After a deletion of this process's own, which so is known before it is notified of.
  void Change() { ++generation_; }
  // OK while the last question was answered less than kTrustNs ago; otherwise what it failed with.
  // Does not wait.
  absl::Status Check() const;

 private:
  PostgresGeneration(const PostgresConnectionOptions& options, const Clock& clock, int wake);

  void Run(std::unique_ptr<PostgresConnection> connection);
  absl::Status Connect(std::unique_ptr<PostgresConnection>& connection);
  absl::Status Ask(PostgresConnection& connection);
  void Distrust(const absl::Status& why);
  bool Trusted() const { return clock_.MonotonicNs() < trusted_until_ns_; }

  const PostgresConnectionOptions options_;
  const Clock& clock_;
  const int wake_;  // a descriptor that can be read once this is to end
  mutable std::atomic<uint64_t> generation_{0};
  std::atomic<int64_t> trusted_until_ns_;
  std::atomic<bool> ending_{false};
  int64_t deletions_ = -1;  // at the last answer; used by whoever asks
  mutable Mutex mutex_;
  absl::Status failed_ STEPCAST_GUARDED_BY(mutex_);
  std::thread thread_;
};

// The profile store in a PostgreSQL database, which several processes may share.
//
// Durability: a Put or Delete that returned OK is committed, as durably as the database is. One
// that failed with UNAVAILABLE because the connection broke while it committed is done or not; a
// Put may be repeated in either case. Cost: Get, GetSummary and List are one round trip, Put
// eleven, two more where its owner has a limit, and what writes takes turns, among all processes,
// for six or seven of them and the commit; so the limits are exact. A content crosses the network
// before its turn. Threads: safe; as many calls at one time as the database has connections for.
class PostgresProfileStore final : public ProfileStore {
 public:
  // Borrows the database and the clock. Fails as PostgresGeneration::Follow does.
  static absl::StatusOr<std::unique_ptr<PostgresProfileStore>> Open(PostgresDatabase& database,
                                                                    const StoreLimits& limits,
                                                                    const Clock& clock);

  absl::StatusOr<ProfileSummary> Put(const StoredProfile& profile,
                                     const std::string& request_id) override;
  absl::StatusOr<ProfileSummary> Replace(const StoredProfile& profile,
                                         const ReplaceTerms& terms) override;
  absl::StatusOr<StoredProfile> Get(const std::string& id) override;
  absl::StatusOr<ProfileSummary> GetSummary(const std::string& id) override;
  absl::StatusOr<ProfilePage> List(const ListQuery& query) override;
  absl::Status Delete(const std::string& id, const std::string& etag) override;
  void SetLimits(const StoreLimits& limits) override { limits_.Set(limits); }
  // Does not wait: whether the database answered in the last seconds.
  absl::Status Check() override { return generation_->Check(); }
  uint64_t Generation() const override { return generation_->Current(); }

 private:
  // The profiles that a Put or Replace finds.
  struct Found {
    std::optional<ProfileSummary> answer;  // that of the same request before
    std::optional<ProfileSummary> there;   // what has the id
    bool is_to_be_written = false;
  };

  PostgresProfileStore(PostgresDatabase& database, const StoreLimits& limits, const Clock& clock,
                       std::unique_ptr<PostgresGeneration> generation)
      : connections_(database.connections()),
        limits_(limits),
        clock_(clock),
        generation_(std::move(generation)) {}

  absl::StatusOr<Found> Look(PostgresConnection& connection, const StoredProfile& profile,
                             const WriteTerms& terms, const TotalsRow& totals);
  absl::Status CheckQuota(PostgresConnection& connection, const std::string& owner,
                          const TotalsRow& growth, const TotalsRow& totals);
  absl::StatusOr<ProfileSummary> WriteOn(PostgresConnection& connection,
                                         const StoredProfile& profile, const WriteTerms& terms);
  absl::StatusOr<ProfileSummary> WriteInTurn(PostgresConnection& connection,
                                             const StoredProfile& profile, const WriteTerms& terms,
                                             bool seems_new);
  // `sequence` is that of the content if it was sent already.
  absl::StatusOr<ProfileSummary> Settle(PostgresConnection& connection,
                                        const StoredProfile& profile, const Found& found,
                                        std::optional<int64_t> sequence);
  absl::Status DeleteOn(PostgresConnection& connection, const std::string& id,
                        const std::string& etag);

  PostgresConnectionPool& connections_;
  ReloadedLimits limits_;
  const Clock& clock_;
  const std::unique_ptr<PostgresGeneration> generation_;
};

// The rows of the profiles in a PostgreSQL database: one function for each thing the store reads or
// writes; postgres_profile_rows.cc has these.
//
// Each is one statement, within the caller's transaction if there is one. Errors are those of
// PostgresError. Threads: those of the connection.

absl::StatusOr<std::optional<ProfileSummary>> FindProfile(PostgresConnection& connection,
                                                          const std::string& id);
// With its content. DATA_LOSS, reason PROFILE_CORRUPT, unless the bytes have the checksum they had
// when inserted.
absl::StatusOr<std::optional<StoredProfile>> ReadProfile(PostgresConnection& connection,
                                                         const std::string& id);
// Cost: O(profiles passed over + those returned), all in the database.
absl::StatusOr<ProfilePage> ListProfiles(PostgresConnection& connection, const ListQuery& query);

// A content before the profile it belongs to; the number is for InsertProfile, in the same
// transaction. Waits for nobody.
absl::StatusOr<int64_t> InsertContent(PostgresConnection& connection, const StoredProfile& profile);
absl::Status DeleteContent(PostgresConnection& connection, int64_t sequence);
absl::Status InsertProfile(PostgresConnection& connection, int64_t sequence,
                           const ProfileSummary& summary, int64_t content_bytes);
absl::Status DeleteProfile(PostgresConnection& connection, const std::string& id);

absl::StatusOr<TotalsRow> ReadTotals(PostgresConnection& connection);
// The same, and until the transaction ends nobody else writes profiles.
absl::StatusOr<TotalsRow> LockTotals(PostgresConnection& connection);
// The owner's totals; once LockTotals was called they stay so. REQUIRES: it has a name.
absl::StatusOr<TotalsRow> ReadOwned(PostgresConnection& connection, const std::string& owner);

absl::StatusOr<std::optional<RequestRow>> FindRequest(PostgresConnection& connection,
                                                      const std::string& request_id);
// Forgets the oldest ones beyond `max_request_ids`. REQUIRES: LockTotals was called.
absl::Status InsertRequest(PostgresConnection& connection, const std::string& request_id,
                           const RequestRow& row, int64_t max_request_ids);

}  // namespace stepcast::server
