// The profile store in a PostgreSQL database, which several processes may share.
//
// Durability: a Put or Delete that returned OK is committed, as durably as the database is. One
// that failed with UNAVAILABLE because the connection broke while it committed is done or not; a
// Put may be repeated in either case. Cost: Get, GetSummary and List are one round trip, Put
// eleven, two more where its owner has a limit, and what writes takes turns, among all processes,
// for six or seven of them and the commit; so the limits are exact. A content crosses the network
// before its turn. Threads: safe; as many calls at one time as the database has connections for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/base/clock.h"
#include "server/store/postgres_database.h"
#include "server/store/postgres_generation.h"
#include "server/store/profile_rules.h"
#include "server/store/profile_store.h"

namespace stepcast::server {

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

}  // namespace stepcast::server
