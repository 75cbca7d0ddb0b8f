#include "server/store/sqlite_profile_store.h"

#include <optional>
#include <utility>

#include "server/store/profile_rules.h"
#include "server/store/sqlite_connection.h"
#include "server/store/sqlite_profile_rows.h"
#include "server/store/store_error.h"

namespace stepcast::server {

absl::StatusOr<std::unique_ptr<SqliteProfileStore>> SqliteProfileStore::Open(
    const SqliteProfileStoreOptions& options, const Clock& clock) {
  absl::StatusOr<std::unique_ptr<SqliteDatabase>> database =
      SqliteDatabase::Open({.directory = options.directory,
                            .readers = options.readers,
                            .busy_timeout_ms = options.busy_timeout_ms});
  if (!database.ok()) return database.status();
  auto store = std::make_unique<SqliteProfileStore>(**database, options.limits, clock);
  store->owned_ = *std::move(database);
  return store;
}

absl::StatusOr<ProfileSummary> SqliteProfileStore::Put(const StoredProfile& profile,
                                                       const std::string& request_id) {
  return Write(profile, {.request_id = request_id});
}

absl::StatusOr<ProfileSummary> SqliteProfileStore::Replace(const StoredProfile& profile,
                                                           const ReplaceTerms& terms) {
  return Write(profile, {.request_id = terms.request_id, .replace = terms});
}

absl::StatusOr<ProfileSummary> SqliteProfileStore::Write(const StoredProfile& profile,
                                                         const WriteTerms& terms) {
  return database_.Write(
      {.bytes = static_cast<int64_t>(profile.content.size())},
      [&](SqliteDatabase::Writing& writing) { return WriteOn(writing, profile, terms); });
}

absl::StatusOr<ProfileSummary> SqliteProfileStore::WriteOn(SqliteDatabase::Writing& writing,
                                                           const StoredProfile& profile,
                                                           const WriteTerms& terms) {
  const ProfileSummary& wanted = profile.summary;
  absl::StatusOr<std::optional<ProfileSummary>> earlier = Replay(*writing, wanted, terms);
  if (!earlier.ok()) return earlier.status();
  if (earlier->has_value()) return **std::move(earlier);

  const absl::StatusOr<std::optional<ProfileSummary>> there = FindProfile(*writing, wanted.id);
  if (!there.ok()) return there.status();
  const absl::StatusOr<bool> is_new = IsToBeWritten(wanted, *there, terms);
  if (!is_new.ok()) return is_new.status();

  absl::StatusOr<ProfileSummary> stored =
      *is_new ? WriteNew(*writing, profile, *there) : absl::StatusOr<ProfileSummary>(**there);
  if (!stored.ok()) return stored;
  if (!terms.request_id.empty()) {
    absl::Status status = InsertRequest(*writing, terms.request_id, RowOf(*stored, terms),
                                        limits_.Get().max_request_ids);
    if (!status.ok()) return status;
  }
  if (absl::Status status = writing.Commit(); !status.ok()) return status;
  if (*is_new && there->has_value()) ++generation_;
  return stored;
}

absl::StatusOr<StoredProfile> SqliteProfileStore::Get(const std::string& id) {
  const SqliteConnectionPool::Lease reader = database_.Read();
  SqliteTransaction transaction(*reader, SqliteTransaction::Kind::kRead);
  if (!transaction.status().ok()) return transaction.status();
  absl::StatusOr<std::optional<ProfileSummary>> summary = FindProfile(*reader, id);
  if (!summary.ok()) return summary.status();
  if (!summary->has_value()) return ProfileNotFound(id);
  absl::StatusOr<std::string> content = ReadContent(*reader, **summary);
  if (!content.ok()) return content.status();
  return StoredProfile{.summary = **std::move(summary), .content = *std::move(content)};
}

absl::StatusOr<ProfileSummary> SqliteProfileStore::GetSummary(const std::string& id) {
  const SqliteConnectionPool::Lease reader = database_.Read();
  absl::StatusOr<std::optional<ProfileSummary>> summary = FindProfile(*reader, id);
  if (!summary.ok()) return summary.status();
  if (!summary->has_value()) return ProfileNotFound(id);
  return **std::move(summary);
}

absl::StatusOr<ProfilePage> SqliteProfileStore::List(const ListQuery& query) {
  const SqliteConnectionPool::Lease reader = database_.Read();
  return ListProfiles(*reader, query);
}

absl::Status SqliteProfileStore::Delete(const std::string& id, const std::string& etag) {
  return database_.Write({.makes_room = true}, [&](SqliteDatabase::Writing& writing) {
    return DeleteOn(writing, id, etag);
  });
}

absl::Status SqliteProfileStore::DeleteOn(SqliteDatabase::Writing& writing, const std::string& id,
                                          const std::string& etag) {
  const absl::StatusOr<std::optional<ProfileSummary>> there = FindProfile(*writing, id);
  if (!there.ok()) return there.status();
  if (!there->has_value()) return ProfileNotFound(id);
  if (!etag.empty() && etag != (*there)->etag) return EtagMismatch(id, etag, (*there)->etag);
  if (absl::Status status = DeleteProfile(*writing, id); !status.ok()) return status;
  if (absl::Status status = writing.Commit(); !status.ok()) return status;
  ++generation_;
  return absl::OkStatus();
}

absl::Status SqliteProfileStore::Check() { return database_.Check(); }

absl::StatusOr<std::optional<ProfileSummary>> SqliteProfileStore::Replay(
    SqliteConnection& connection, const ProfileSummary& summary, const WriteTerms& terms) {
  if (terms.request_id.empty()) return std::optional<ProfileSummary>();
  const absl::StatusOr<std::optional<RequestRow>> seen = FindRequest(connection, terms.request_id);
  if (!seen.ok()) return seen.status();
  if (!seen->has_value()) return std::optional<ProfileSummary>();
  const absl::StatusOr<std::optional<ProfileSummary>> there = FindProfile(connection, summary.id);
  if (!there.ok()) return there.status();
  return AnswerAgain(terms, **seen, *there, summary);
}

absl::StatusOr<ProfileSummary> SqliteProfileStore::WriteNew(
    SqliteConnection& connection, const StoredProfile& profile,
    const std::optional<ProfileSummary>& there) {
  absl::StatusOr<ProfileSummary> written = AsWritten(profile.summary, there, clock_.WallNs());
  if (!written.ok()) return written.status();
  if (absl::Status quota = CheckQuota(connection, written->owner, GrowthOf(profile, there));
      !quota.ok())
    return quota;
  absl::Status status =
      there.has_value() ? DeleteProfile(connection, written->id) : absl::OkStatus();
  if (status.ok()) status = InsertProfile(connection, *written, profile.content);
  if (!status.ok()) return status;
  return written;
}

absl::Status SqliteProfileStore::CheckQuota(SqliteConnection& connection, const std::string& owner,
                                            const TotalsRow& growth) {
  const StoreLimits limits = limits_.Get();
  if (HasShareLimit(owner, limits)) {
    const absl::StatusOr<TotalsRow> owned = ReadOwned(connection, owner);
    if (!owned.ok()) return owned.status();
    if (absl::Status share = CheckShare(owner, *owned, limits, growth); !share.ok()) return share;
  }
  const absl::StatusOr<TotalsRow> totals = ReadTotals(connection);
  if (!totals.ok()) return totals.status();
  return CheckRoom(*totals, limits, growth);
}

}  // namespace stepcast::server
