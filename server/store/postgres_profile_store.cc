#include "server/store/postgres_profile_store.h"

#include "server/store/postgres_connection.h"
#include "server/store/postgres_profile_rows.h"
#include "server/store/profile_rules.h"
#include "server/store/store_error.h"

namespace stepcast::server {

absl::StatusOr<std::unique_ptr<PostgresProfileStore>> PostgresProfileStore::Open(
    PostgresDatabase& database, const StoreLimits& limits, const Clock& clock) {
  absl::StatusOr<std::unique_ptr<PostgresGeneration>> generation =
      PostgresGeneration::Follow(database.connection_options(), clock);
  if (!generation.ok()) return generation.status();
  return std::unique_ptr<PostgresProfileStore>(
      new PostgresProfileStore(database, limits, clock, *std::move(generation)));
}

absl::StatusOr<ProfileSummary> PostgresProfileStore::Put(const StoredProfile& profile,
                                                         const std::string& request_id) {
  return connections_.Run(
      [&](PostgresConnection& connection) { return PutOn(connection, profile, request_id); });
}

absl::StatusOr<StoredProfile> PostgresProfileStore::Get(const std::string& id) {
  const absl::StatusOr<PostgresConnectionPool::Lease> connection = connections_.Take();
  if (!connection.ok()) return connection.status();
  absl::StatusOr<std::optional<StoredProfile>> profile = ReadProfile(**connection, id);
  if (!profile.ok()) return profile.status();
  if (!profile->has_value()) return ProfileNotFound(id);
  return **std::move(profile);
}

absl::StatusOr<ProfileSummary> PostgresProfileStore::GetSummary(const std::string& id) {
  const absl::StatusOr<PostgresConnectionPool::Lease> connection = connections_.Take();
  if (!connection.ok()) return connection.status();
  absl::StatusOr<std::optional<ProfileSummary>> summary = FindProfile(**connection, id);
  if (!summary.ok()) return summary.status();
  if (!summary->has_value()) return ProfileNotFound(id);
  return **std::move(summary);
}

absl::StatusOr<ProfilePage> PostgresProfileStore::List(const ListQuery& query) {
  const absl::StatusOr<PostgresConnectionPool::Lease> connection = connections_.Take();
  if (!connection.ok()) return connection.status();
  return ListProfiles(**connection, query);
}

absl::Status PostgresProfileStore::Delete(const std::string& id, const std::string& etag) {
  absl::Status status = connections_.Run(
      [&](PostgresConnection& connection) { return DeleteOn(connection, id, etag); });
  // Where the connection broke it may have been committed.
  if (status.ok() || absl::IsUnavailable(status)) generation_->Change();
  return status;
}

absl::StatusOr<PostgresProfileStore::Found> PostgresProfileStore::Look(
    PostgresConnection& connection, const StoredProfile& profile, const std::string& request_id,
    const TotalsRow& totals) {
  const ProfileSummary& summary = profile.summary;
  absl::StatusOr<std::optional<ProfileSummary>> there = FindProfile(connection, summary.id);
  if (!there.ok()) return there.status();
  if (!request_id.empty()) {
    const absl::StatusOr<std::optional<RequestRow>> seen = FindRequest(connection, request_id);
    if (!seen.ok()) return seen.status();
    if (seen->has_value()) {
      absl::StatusOr<ProfileSummary> again = AnswerAgain(request_id, **seen, *there, summary);
      if (!again.ok()) return again.status();
      return Found{.again = *std::move(again), .there = {}};
    }
  }
  if (!there->has_value()) {
    if (absl::Status quota = CheckQuota(connection, profile, totals); !quota.ok()) return quota;
  } else if ((*there)->digest != summary.digest) {
    return ProfileExists(summary.id, (*there)->digest, summary.digest);
  }
  return Found{.again = {}, .there = *std::move(there)};
}

absl::Status PostgresProfileStore::CheckQuota(PostgresConnection& connection,
                                              const StoredProfile& profile,
                                              const TotalsRow& totals) {
  const StoreLimits limits = limits_.Get();
  const std::string& owner = profile.summary.owner;
  const auto new_bytes = static_cast<int64_t>(profile.content.size());
  if (HasShareLimit(owner, limits)) {
    // Asked after the totals were locked, not with them: a statement that waited for a lock sees
    // other tables as they were before.
    const absl::StatusOr<TotalsRow> owned = ReadOwned(connection, owner);
    if (!owned.ok()) return owned.status();
    if (absl::Status share = CheckShare(owner, *owned, limits, new_bytes); !share.ok())
      return share;
  }
  return CheckRoom(totals, limits, new_bytes);
}

absl::StatusOr<ProfileSummary> PostgresProfileStore::PutOn(PostgresConnection& connection,
                                                           const StoredProfile& profile,
                                                           const std::string& request_id) {
  // First without a turn: most repetitions and refusals end here, and a content that is not to be
  // stored is not sent.
  const absl::StatusOr<TotalsRow> totals = ReadTotals(connection);
  if (!totals.ok()) return totals.status();
  const absl::StatusOr<Found> found = Look(connection, profile, request_id, *totals);
  if (!found.ok()) return found.status();
  if (found->again.has_value()) return *found->again;
  if (found->there.has_value() && request_id.empty()) return *found->there;

  return Write(connection, profile, request_id, !found->there.has_value());
}

absl::StatusOr<ProfileSummary> PostgresProfileStore::Write(PostgresConnection& connection,
                                                           const StoredProfile& profile,
                                                           const std::string& request_id,
                                                           bool seems_new) {
  PostgresTransaction transaction(connection);
  if (!transaction.status().ok()) return transaction.status();
  std::optional<int64_t> sequence;
  if (seems_new) {
    const absl::StatusOr<int64_t> inserted = InsertContent(connection, profile);
    if (!inserted.ok()) return inserted.status();
    sequence = *inserted;
  }
  const absl::StatusOr<TotalsRow> totals = LockTotals(connection);
  if (!totals.ok()) return totals.status();
  // Another may have had its turn meanwhile, so all is asked again.
  const absl::StatusOr<Found> found = Look(connection, profile, request_id, *totals);
  if (!found.ok()) return found.status();
  if (found->again.has_value()) return *found->again;
  absl::StatusOr<ProfileSummary> stored = Settle(connection, profile, found->there, sequence);
  if (!stored.ok()) return stored;
  if (!request_id.empty()) {
    if (absl::Status status =
            InsertRequest(connection, request_id, *stored, limits_.Get().max_request_ids);
        !status.ok())
      return status;
  }
  if (absl::Status status = transaction.Commit(); !status.ok()) return status;
  return stored;
}

absl::StatusOr<ProfileSummary> PostgresProfileStore::Settle(
    PostgresConnection& connection, const StoredProfile& profile,
    const std::optional<ProfileSummary>& there, std::optional<int64_t> sequence) {
  if (there.has_value()) {
    const absl::Status deleted =
        sequence.has_value() ? DeleteContent(connection, *sequence) : absl::OkStatus();
    return deleted.ok() ? absl::StatusOr<ProfileSummary>(*there) : deleted;
  }
  if (!sequence.has_value()) {  // it was deleted since
    const absl::StatusOr<int64_t> inserted = InsertContent(connection, profile);
    if (!inserted.ok()) return inserted.status();
    sequence = *inserted;
  }
  return PutNew(connection, *sequence, profile);
}

absl::StatusOr<ProfileSummary> PostgresProfileStore::PutNew(PostgresConnection& connection,
                                                            int64_t sequence,
                                                            const StoredProfile& profile) {
  absl::StatusOr<std::string> etag = NewEtag();
  if (!etag.ok()) return etag.status();
  ProfileSummary stored = profile.summary;
  stored.etag = *std::move(etag);
  stored.create_time_ns = clock_.WallNs();
  if (absl::Status status =
          InsertProfile(connection, sequence, stored, static_cast<int64_t>(profile.content.size()));
      !status.ok())
    return status;
  return stored;
}

absl::Status PostgresProfileStore::DeleteOn(PostgresConnection& connection, const std::string& id,
                                            const std::string& etag) {
  PostgresTransaction transaction(connection);
  if (!transaction.status().ok()) return transaction.status();
  if (absl::Status locked = LockTotals(connection).status(); !locked.ok()) return locked;
  const absl::StatusOr<std::optional<ProfileSummary>> there = FindProfile(connection, id);
  if (!there.ok()) return there.status();
  if (!there->has_value()) return ProfileNotFound(id);
  if (!etag.empty() && etag != (*there)->etag) return EtagMismatch(id, etag, (*there)->etag);
  if (absl::Status status = DeleteProfile(connection, id); !status.ok()) return status;
  return transaction.Commit();
}

}  // namespace stepcast::server
