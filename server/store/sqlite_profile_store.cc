#include "server/store/sqlite_profile_store.h"

#include <optional>
#include <utility>

#include "server/store/profile_store.h"
#include "server/store/sqlite_connection.h"
#include "server/store/store_error.h"

namespace stepcast::server {

namespace {

// One row for each label, at least one; the labels of a profile come together.
#define STEPCAST_SELECT_SUMMARIES                                                                 \
  "SELECT p.sequence, p.id, p.digest, p.etag, p.display_name, p.model, p.framework, "             \
  "p.batch_size, p.parameter_servers, p.operation_count, "                                        \
  "p.step_count, p.size_bytes, p.create_time_ns, p.owner, p.update_time_ns, l.key, l.value FROM " \
  "profiles AS p LEFT JOIN labels AS l ON l.profile = p.sequence "

constexpr char kSqliteFindProfile[] = STEPCAST_SELECT_SUMMARIES "WHERE p.id = ?";
constexpr char kSqliteListProfiles[] = STEPCAST_SELECT_SUMMARIES "WHERE p.id > ? ORDER BY p.id";
#undef STEPCAST_SELECT_SUMMARIES

constexpr int kSequenceColumn = 0;
constexpr int kLabelKeyColumn = 15;
constexpr int kLabelValueColumn = 16;

ProfileSummary SummaryAt(const SqliteStatement& row) {
  ProfileSummary summary;
  summary.id = row.BytesAt(1);
  summary.digest = row.BytesAt(2);
  summary.etag = row.BytesAt(3);
  summary.display_name = row.BytesAt(4);
  summary.model = row.BytesAt(5);
  summary.framework = row.BytesAt(6);
  summary.batch_size = static_cast<int32_t>(row.IntegerAt(7));
  summary.parameter_servers = static_cast<int32_t>(row.IntegerAt(8));
  summary.operation_count = static_cast<int32_t>(row.IntegerAt(9));
  summary.step_count = static_cast<int32_t>(row.IntegerAt(10));
  summary.size_bytes = row.IntegerAt(11);
  summary.create_time_ns = row.IntegerAt(12);
  summary.owner = row.BytesAt(13);
  summary.update_time_ns = row.IntegerAt(14);
  return summary;
}

// Puts the rows of a SELECT above together to summaries, one for each Next.
class SummaryReader {
 public:
  explicit SummaryReader(SqliteStatement& rows) : rows_(rows) {}

  absl::StatusOr<std::optional<ProfileSummary>> Next() {
    if (!started_) {
      if (absl::Status status = Advance(); !status.ok()) return status;
      started_ = true;
    }
    if (!has_row_) return std::optional<ProfileSummary>();
    ProfileSummary summary = SummaryAt(rows_);
    const int64_t sequence = rows_.IntegerAt(kSequenceColumn);
    while (has_row_ && rows_.IntegerAt(kSequenceColumn) == sequence) {
      if (!rows_.IsNullAt(kLabelKeyColumn))
        summary.labels.emplace(rows_.BytesAt(kLabelKeyColumn), rows_.BytesAt(kLabelValueColumn));
      if (absl::Status status = Advance(); !status.ok()) return status;
    }
    return summary;
  }

 private:
  absl::Status Advance() {
    const absl::StatusOr<bool> row = rows_.Step();
    has_row_ = row.ok() && *row;
    return row.status();
  }

  SqliteStatement& rows_;
  bool started_ = false;
  bool has_row_ = false;
};

// The one row there is; none is nothing.
absl::StatusOr<TotalsRow> TotalsOf(SqliteStatement& rows) {
  const absl::StatusOr<bool> found = rows.Step();
  if (!found.ok()) return found.status();
  return *found ? TotalsRow{.profiles = rows.IntegerAt(0), .content_bytes = rows.IntegerAt(1)}
                : TotalsRow{};
}

}  // namespace

absl::StatusOr<std::optional<ProfileSummary>> FindProfile(SqliteConnection& connection,
                                                          const std::string& id) {
  SqliteStatement rows = connection.Use(kSqliteFindProfile);
  rows.Text(id);
  return SummaryReader(rows).Next();
}

absl::StatusOr<std::string> ReadContent(SqliteConnection& connection,
                                        const ProfileSummary& summary) {
  SqliteStatement rows = connection.Use(
      "SELECT c.checksum, c.bytes FROM contents AS c JOIN profiles AS p ON p.sequence = c.profile "
      "WHERE p.id = ?");
  const absl::StatusOr<bool> found = rows.Text(summary.id).Step();
  if (!found.ok()) return found.status();
  if (!*found) return ProfileCorrupt(summary.id, "it is missing");
  std::string content = rows.BytesAt(1);
  if (ContentChecksum(summary, content) != rows.IntegerAt(0))
    return ProfileCorrupt(summary.id, "the checksum is another");
  return content;
}

absl::Status InsertProfile(SqliteConnection& connection, const ProfileSummary& summary,
                           const std::string& content) {
  {
    SqliteStatement insert = connection.Use(
        "INSERT INTO profiles (id, digest, etag, display_name, model, framework, batch_size, "
        "parameter_servers, operation_count, step_count, "
        "size_bytes, create_time_ns, content_bytes, owner, update_time_ns) VALUES (?, ?, ?, ?, "
        "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    insert.Text(summary.id)
        .Text(summary.digest)
        .Text(summary.etag)
        .Text(summary.display_name)
        .Text(summary.model)
        .Text(summary.framework);
    insert.Integer(summary.batch_size)
        .Integer(summary.parameter_servers)
        .Integer(summary.operation_count)
        .Integer(summary.step_count);
    insert.Integer(summary.size_bytes)
        .Integer(summary.create_time_ns)
        .Integer(static_cast<int64_t>(content.size()));
    insert.Text(summary.owner).Integer(summary.update_time_ns);
    if (absl::Status status = insert.Run(); !status.ok()) return status;
  }
  // The rowid of the last INSERT into profiles; what triggers do does not change it.
  const absl::StatusOr<int64_t> sequence = connection.IntegerOf("SELECT last_insert_rowid()");
  if (!sequence.ok()) return sequence.status();
  for (const auto& [key, value] : summary.labels) {
    SqliteStatement insert =
        connection.Use("INSERT INTO labels (profile, key, value) VALUES (?, ?, ?)");
    if (absl::Status status = insert.Integer(*sequence).Text(key).Text(value).Run(); !status.ok())
      return status;
  }
  SqliteStatement insert =
      connection.Use("INSERT INTO contents (profile, checksum, bytes) VALUES (?, ?, ?)");
  return insert.Integer(*sequence).Integer(ContentChecksum(summary, content)).Blob(content).Run();
}

absl::Status DeleteProfile(SqliteConnection& connection, const std::string& id) {
  return connection.Use("DELETE FROM profiles WHERE id = ?").Text(id).Run();
}

absl::StatusOr<ProfilePage> ListProfiles(SqliteConnection& connection, const ListQuery& query) {
  ProfilePage page;
  SqliteStatement rows = connection.Use(kSqliteListProfiles);
  rows.Text(query.after);
  SummaryReader reader(rows);
  while (true) {
    absl::StatusOr<std::optional<ProfileSummary>> summary = reader.Next();
    if (!summary.ok()) return summary.status();
    if (!summary->has_value()) return page;
    if (!Matches(query.filter, **summary)) continue;
    page.more = page.profiles.size() == static_cast<size_t>(query.limit);
    if (page.more) return page;
    page.profiles.push_back(*std::move(*summary));
  }
}

absl::StatusOr<TotalsRow> ReadTotals(SqliteConnection& connection) {
  SqliteStatement rows = connection.Use("SELECT profiles, content_bytes FROM totals");
  return TotalsOf(rows);
}

absl::StatusOr<TotalsRow> ReadOwned(SqliteConnection& connection, const std::string& owner) {
  SqliteStatement rows =
      connection.Use("SELECT profiles, content_bytes FROM owners WHERE owner = ?");
  return TotalsOf(rows.Text(owner));
}

absl::StatusOr<std::optional<RequestRow>> FindRequest(SqliteConnection& connection,
                                                      const std::string& request_id) {
  SqliteStatement rows = connection.Use(
      "SELECT profile_id, digest, etag, owner, create_time_ns, update_time_ns FROM requests WHERE "
      "request_id = ?");
  const absl::StatusOr<bool> found = rows.Text(request_id).Step();
  if (!found.ok()) return found.status();
  if (!*found) return std::optional<RequestRow>();
  return RequestRow{.profile_id = rows.BytesAt(0),
                    .digest = rows.BytesAt(1),
                    .etag = rows.BytesAt(2),
                    .owner = rows.BytesAt(3),
                    .create_time_ns = rows.IntegerAt(4),
                    .update_time_ns = rows.IntegerAt(5)};
}

absl::Status InsertRequest(SqliteConnection& connection, const std::string& request_id,
                           const RequestRow& row, int64_t max_request_ids) {
  SqliteStatement insert = connection.Use(
      "INSERT INTO requests (request_id, profile_id, digest, etag, owner, create_time_ns, "
      "update_time_ns) VALUES (?, ?, ?, ?, ?, ?, ?)");
  insert.Text(request_id)
      .Text(row.profile_id)
      .Text(row.digest)
      .Text(row.etag)
      .Text(row.owner)
      .Integer(row.create_time_ns)
      .Integer(row.update_time_ns);
  if (absl::Status status = insert.Run(); !status.ok()) return status;
  // Numbers are without gaps, because only the lowest are ever removed and the next one is the
  // highest plus one.
  return connection
      .Use("DELETE FROM requests WHERE sequence <= (SELECT max(sequence) FROM requests) - ?")
      .Integer(max_request_ids)
      .Run();
}

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
