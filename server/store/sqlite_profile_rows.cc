#include "server/store/sqlite_profile_rows.h"

#include <utility>

#include "server/store/profile_rules.h"
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

}  // namespace stepcast::server
