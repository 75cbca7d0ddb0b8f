#include "server/store/sqlite_profile_store.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "server/store/etag.h"
#include "server/store/sqlite_profile_rows.h"
#include "server/store/sqlite_schema.h"
#include "server/store/sqlite_transaction.h"
#include "server/store/store_error.h"

namespace stepcast::server {

namespace {

absl::Status InDirectory(const std::string& directory, const absl::Status& status) {
  ErrorDetails details = DetailsOf(status);
  details.metadata["directory"] = directory;
  return MakeError(status.code(), absl::StrCat("data directory ", directory, ": ", std::string(status.message())), std::move(details));
}

// Readers need not wait for the writer, nor it for them, only with a write-ahead log.
absl::Status UseWriteAheadLog(SqliteConnection& connection) {
  SqliteStatement pragma = connection.Use("PRAGMA journal_mode = WAL");
  const absl::StatusOr<bool> row = pragma.Step();
  if (!row.ok()) return row.status();
  const std::string mode = *row ? pragma.BytesAt(0) : "";
  return mode == "wal" ? absl::OkStatus() : StoreUnavailable(absl::StrCat("the file system allows no write-ahead log, only journal mode ", mode));
}

}  // namespace

absl::StatusOr<SqliteProfileStore::Connections> SqliteProfileStore::Connect(const DataDirectory& directory,
                                                                            const SqliteProfileStoreOptions& options) {
  const SqliteConnectionOptions to_file = {.path = directory.File(kDatabaseFile), .busy_timeout_ms = options.busy_timeout_ms};
  absl::StatusOr<std::unique_ptr<SqliteConnection>> writer = SqliteConnection::Open(to_file);
  if (!writer.ok()) return writer.status();
  // The schema first: a file that is not ours is left as it was.
  if (absl::Status status = MigrateSchema(**writer, SchemaMigrations()); !status.ok()) return status;
  if (absl::Status status = UseWriteAheadLog(**writer); !status.ok()) return status;
  Connections connections{.writer = *std::move(writer), .readers = {}};
  for (int i = 0; i < options.readers; ++i) {
    absl::StatusOr<std::unique_ptr<SqliteConnection>> reader = SqliteConnection::Open(to_file);
    if (!reader.ok()) return reader.status();
    if (absl::Status status = (*reader)->Execute("PRAGMA query_only = ON"); !status.ok()) return status;
    connections.readers.push_back(*std::move(reader));
  }
  return connections;
}

absl::StatusOr<std::unique_ptr<SqliteProfileStore>> SqliteProfileStore::Open(const SqliteProfileStoreOptions& options, const Clock& clock) {
  absl::StatusOr<DataDirectory> directory = DataDirectory::Own(options.directory);
  if (!directory.ok()) return directory.status();
  absl::StatusOr<Connections> connections = Connect(*directory, options);
  if (!connections.ok()) return InDirectory(directory->path(), connections.status());
  return std::unique_ptr<SqliteProfileStore>(new SqliteProfileStore(*std::move(directory), options.limits, clock, *std::move(connections)));
}

SqliteProfileStore::SqliteProfileStore(DataDirectory directory, const StoreLimits& limits, const Clock& clock, Connections connections)
    : directory_(std::move(directory)),
      limits_(limits),
      clock_(clock),
      writer_(std::move(connections.writer)),
      readers_(std::move(connections.readers)) {}

absl::StatusOr<ProfileSummary> SqliteProfileStore::Put(const StoredProfile& profile, const std::string& request_id) {
  const ProfileSummary& summary = profile.summary;
  MutexLock lock(mutex_);
  if (absl::Status status = CheckFile(); !status.ok()) return status;
  SqliteTransaction transaction(*writer_, SqliteTransaction::Kind::kWrite);
  if (!transaction.status().ok()) return transaction.status();

  absl::StatusOr<std::optional<ProfileSummary>> earlier = Replay(summary, request_id);
  if (!earlier.ok()) return earlier.status();
  if (earlier->has_value()) return **std::move(earlier);

  absl::StatusOr<std::optional<ProfileSummary>> there = FindProfile(*writer_, summary.id);
  if (!there.ok()) return there.status();
  if (there->has_value() && (*there)->digest != summary.digest) return ProfileExists(summary.id, (*there)->digest, summary.digest);

  absl::StatusOr<ProfileSummary> stored = there->has_value() ? **std::move(there) : PutNew(profile);
  if (!stored.ok()) return stored;
  if (!request_id.empty()) {
    absl::Status status = InsertRequest(*writer_, request_id, *stored, limits_.max_request_ids);
    if (!status.ok()) return status;
  }
  if (absl::Status status = transaction.Commit(); !status.ok()) return status;
  return stored;
}

absl::StatusOr<StoredProfile> SqliteProfileStore::Get(const std::string& id) {
  const SqliteConnectionPool::Lease reader = readers_.Take();
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
  const SqliteConnectionPool::Lease reader = readers_.Take();
  absl::StatusOr<std::optional<ProfileSummary>> summary = FindProfile(*reader, id);
  if (!summary.ok()) return summary.status();
  if (!summary->has_value()) return ProfileNotFound(id);
  return **std::move(summary);
}

absl::StatusOr<ProfilePage> SqliteProfileStore::List(const ListQuery& query) {
  const SqliteConnectionPool::Lease reader = readers_.Take();
  return ListProfiles(*reader, query);
}

absl::Status SqliteProfileStore::Delete(const std::string& id, const std::string& etag) {
  MutexLock lock(mutex_);
  if (absl::Status status = CheckFile(); !status.ok()) return status;
  SqliteTransaction transaction(*writer_, SqliteTransaction::Kind::kWrite);
  if (!transaction.status().ok()) return transaction.status();
  const absl::StatusOr<std::optional<ProfileSummary>> there = FindProfile(*writer_, id);
  if (!there.ok()) return there.status();
  if (!there->has_value()) return ProfileNotFound(id);
  if (!etag.empty() && etag != (*there)->etag) return EtagMismatch(id, etag, (*there)->etag);
  if (absl::Status status = DeleteProfile(*writer_, id); !status.ok()) return status;
  if (absl::Status status = transaction.Commit(); !status.ok()) return status;
  ++generation_;
  return absl::OkStatus();
}

absl::Status SqliteProfileStore::Check() {
  const SqliteConnectionPool::Lease reader = readers_.Take();
  if ((*reader).FileIsGone()) return StoreUnavailable(absl::StrCat("the database in ", directory_.path(), " was removed"));
  return ReadTotals(*reader).status();
}

absl::StatusOr<std::optional<ProfileSummary>> SqliteProfileStore::Replay(const ProfileSummary& summary, const std::string& request_id) {
  if (request_id.empty()) return std::optional<ProfileSummary>();
  const absl::StatusOr<std::optional<RequestRow>> seen = FindRequest(*writer_, request_id);
  if (!seen.ok()) return seen.status();
  if (!seen->has_value()) return std::optional<ProfileSummary>();
  const RequestRow& first = **seen;
  if (first.profile_id != summary.id || first.digest != summary.digest) return RequestIdReused(request_id, first.profile_id);
  absl::StatusOr<std::optional<ProfileSummary>> there = FindProfile(*writer_, summary.id);
  if (!there.ok() || (there->has_value() && (*there)->etag == first.etag)) return there;
  // Deleted since. A late repetition of the request must not bring it back.
  ProfileSummary then = summary;
  then.etag = first.etag;
  then.create_time_ns = first.create_time_ns;
  return then;
}

absl::StatusOr<ProfileSummary> SqliteProfileStore::PutNew(const StoredProfile& profile) {
  if (absl::Status quota = CheckQuota(static_cast<int64_t>(profile.content.size())); !quota.ok()) return quota;
  absl::StatusOr<std::string> etag = NewEtag();
  if (!etag.ok()) return etag.status();
  ProfileSummary stored = profile.summary;
  stored.etag = *std::move(etag);
  stored.create_time_ns = clock_.WallNs();
  if (absl::Status status = InsertProfile(*writer_, stored, profile.content); !status.ok()) return status;
  return stored;
}

absl::Status SqliteProfileStore::CheckQuota(int64_t new_bytes) {
  const absl::StatusOr<TotalsRow> totals = ReadTotals(*writer_);
  if (!totals.ok()) return totals.status();
  if (totals->profiles >= limits_.max_profiles) return StoreFull("max_profiles", limits_.max_profiles);
  if (new_bytes > limits_.max_total_bytes - totals->content_bytes) return StoreFull("max_total_bytes", limits_.max_total_bytes);
  return absl::OkStatus();
}

absl::Status SqliteProfileStore::CheckFile() {
  if (!writer_->FileIsGone()) return absl::OkStatus();
  return StoreUnavailable(absl::StrCat("the database in ", directory_.path(), " was removed"));
}

}  // namespace stepcast::server
