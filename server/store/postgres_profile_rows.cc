#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "server/store/postgres_profile_store.h"
#include "server/store/profile_store.h"
#include "server/store/store_error.h"

namespace stepcast::server {

namespace {

#define STEPCAST_SUMMARY                                                                     \
  "id, digest, etag, display_name, model, framework, label_keys, label_values, batch_size, " \
  "parameter_servers, operation_count, step_count, "                                         \
  "size_bytes, create_time_ns, owner, update_time_ns"

constexpr char kPostgresFindProfile[] =
    "SELECT " STEPCAST_SUMMARY " FROM stepcast_profiles WHERE id = $1";
constexpr char kReadProfile[] = "SELECT " STEPCAST_SUMMARY
                                ", checksum, bytes FROM stepcast_profiles LEFT JOIN "
                                "stepcast_contents ON profile = sequence WHERE id = $1";
// $2: model or null. $3, $4: keys of labels and the values they must have. $5: keys that must be
// there. One more than the page shows whether there are more.
constexpr char kPostgresListProfiles[] =
    "SELECT " STEPCAST_SUMMARY
    " FROM stepcast_profiles WHERE id > $1 AND ($2::bytea IS NULL OR model = $2) AND label_keys @> "
    "$5 AND NOT EXISTS "
    "(SELECT FROM unnest($3, $4) AS term "
    "(key, value) WHERE label_values[array_position(label_keys, key)] IS DISTINCT FROM value) "
    "ORDER BY id LIMIT $6 + 1";
constexpr int kChecksumColumn = 16;
constexpr int kContentColumn = 17;

ProfileSummary SummaryAt(const PostgresResult& result, int row) {
  const auto text = [&](int column) { return std::string(result.Bytes(row, column)); };
  ProfileSummary summary;
  summary.id = text(0);
  summary.digest = text(1);
  summary.etag = text(2);
  summary.display_name = text(3);
  summary.model = text(4);
  summary.framework = text(5);
  const std::vector<std::string> keys = result.BytesArray(row, 6);
  std::vector<std::string> values = result.BytesArray(row, 7);
  for (size_t i = 0; i < keys.size() && i < values.size(); ++i)
    summary.labels.emplace(keys[i], std::move(values[i]));
  summary.batch_size = static_cast<int32_t>(result.Integer(row, 8));
  summary.parameter_servers = static_cast<int32_t>(result.Integer(row, 9));
  summary.operation_count = static_cast<int32_t>(result.Integer(row, 10));
  summary.step_count = static_cast<int32_t>(result.Integer(row, 11));
  summary.size_bytes = result.Integer(row, 12);
  summary.create_time_ns = result.Integer(row, 13);
  summary.owner = text(14);
  // Rows of a replica that is older than this column have none.
  summary.update_time_ns = std::max(result.Integer(row, 15), summary.create_time_ns);
  return summary;
}

absl::StatusOr<TotalsRow> Totals(PostgresConnection& connection, const char* sql) {
  const absl::StatusOr<PostgresResult> result = connection.Run(sql);
  if (!result.ok()) return result.status();
  if (result->rows() != 1) return StoreUnavailable("the table of totals is empty");
  return TotalsRow{.profiles = result->Integer(0, 0), .content_bytes = result->Integer(0, 1)};
}

}  // namespace

absl::StatusOr<std::optional<ProfileSummary>> FindProfile(PostgresConnection& connection,
                                                          const std::string& id) {
  PostgresParameters parameters;
  parameters.Bytes(id);
  const absl::StatusOr<PostgresResult> result = connection.Run(kPostgresFindProfile, parameters);
  if (!result.ok()) return result.status();
  if (result->rows() == 0) return std::optional<ProfileSummary>();
  return SummaryAt(*result, 0);
}

absl::StatusOr<std::optional<StoredProfile>> ReadProfile(PostgresConnection& connection,
                                                         const std::string& id) {
  PostgresParameters parameters;
  parameters.Bytes(id);
  const absl::StatusOr<PostgresResult> result = connection.Run(kReadProfile, parameters);
  if (!result.ok()) return result.status();
  if (result->rows() == 0) return std::optional<StoredProfile>();
  StoredProfile profile{.summary = SummaryAt(*result, 0), .content = {}};
  if (result->IsNull(0, kChecksumColumn)) return ProfileCorrupt(id, "it is missing");
  const std::string_view content = result->Bytes(0, kContentColumn);
  if (ContentChecksum(profile.summary, content) != result->Integer(0, kChecksumColumn))
    return ProfileCorrupt(id, "the checksum is another");
  profile.content = std::string(content);
  return profile;
}

absl::StatusOr<ProfilePage> ListProfiles(PostgresConnection& connection, const ListQuery& query) {
  const ProfileFilter& filter = query.filter;
  std::vector<std::string_view> keys;
  std::vector<std::string_view> values;
  for (const auto& [key, value] : filter.labels) {
    keys.push_back(key);
    values.push_back(value);
  }
  PostgresParameters parameters;
  parameters.Bytes(query.after);
  filter.model.has_value() ? parameters.Bytes(*filter.model) : parameters.NullBytes();
  parameters.BytesArray(keys)
      .BytesArray(values)
      .BytesArray({filter.present_labels.begin(), filter.present_labels.end()})
      .Integer(query.limit);
  const absl::StatusOr<PostgresResult> result = connection.Run(kPostgresListProfiles, parameters);
  if (!result.ok()) return result.status();
  ProfilePage page;
  page.more = result->rows() > query.limit;
  for (int row = 0; row < result->rows() && row < query.limit; ++row)
    page.profiles.push_back(SummaryAt(*result, row));
  return page;
}

absl::StatusOr<int64_t> InsertContent(PostgresConnection& connection,
                                      const StoredProfile& profile) {
  PostgresParameters parameters;
  parameters.Integer(ContentChecksum(profile.summary, profile.content)).Bytes(profile.content);
  const absl::StatusOr<PostgresResult> result = connection.Run(
      "INSERT INTO stepcast_contents (profile, checksum, bytes) VALUES "
      "(nextval(pg_get_serial_sequence('stepcast_profiles', 'sequence')), $1, $2) "
      "RETURNING profile",
      parameters);
  if (!result.ok()) return result.status();
  return result->Integer(0, 0);
}

absl::Status DeleteContent(PostgresConnection& connection, int64_t sequence) {
  PostgresParameters parameters;
  parameters.Integer(sequence);
  return connection.Run("DELETE FROM stepcast_contents WHERE profile = $1", parameters).status();
}

absl::Status InsertProfile(PostgresConnection& connection, int64_t sequence,
                           const ProfileSummary& summary, int64_t content_bytes) {
  std::vector<std::string_view> keys;
  std::vector<std::string_view> values;
  for (const auto& [key, value] : summary.labels) {
    keys.push_back(key);
    values.push_back(value);
  }
  PostgresParameters parameters;
  parameters.Bytes(summary.id)
      .Bytes(summary.digest)
      .Bytes(summary.etag)
      .Bytes(summary.display_name)
      .Bytes(summary.model)
      .Bytes(summary.framework);
  parameters.BytesArray(keys)
      .BytesArray(values)
      .Integer(summary.batch_size)
      .Integer(summary.parameter_servers)
      .Integer(summary.operation_count);
  parameters.Integer(summary.step_count)
      .Integer(summary.size_bytes)
      .Integer(summary.create_time_ns)
      .Bytes(summary.owner)
      .Integer(summary.update_time_ns)
      .Integer(content_bytes)
      .Integer(sequence);
  return connection
      .Run("INSERT INTO stepcast_profiles (" STEPCAST_SUMMARY
           ", content_bytes, sequence) OVERRIDING SYSTEM VALUE VALUES ($1, $2, $3, $4, $5, $6, $7, "
           "$8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)",
           parameters)
      .status();
}
#undef STEPCAST_SUMMARY

absl::Status DeleteProfile(PostgresConnection& connection, const std::string& id) {
  PostgresParameters parameters;
  parameters.Bytes(id);
  return connection.Run("DELETE FROM stepcast_profiles WHERE id = $1", parameters).status();
}

absl::StatusOr<TotalsRow> ReadTotals(PostgresConnection& connection) {
  return Totals(connection, "SELECT profiles, content_bytes FROM stepcast_totals");
}

absl::StatusOr<TotalsRow> LockTotals(PostgresConnection& connection) {
  return Totals(connection, "SELECT profiles, content_bytes FROM stepcast_totals FOR UPDATE");
}

absl::StatusOr<TotalsRow> ReadOwned(PostgresConnection& connection, const std::string& owner) {
  PostgresParameters parameters;
  parameters.Bytes(owner);
  const absl::StatusOr<PostgresResult> result = connection.Run(
      "SELECT profiles, content_bytes FROM stepcast_owners WHERE owner = $1", parameters);
  if (!result.ok()) return result.status();
  if (result->rows() == 0) return TotalsRow{};
  return TotalsRow{.profiles = result->Integer(0, 0), .content_bytes = result->Integer(0, 1)};
}

absl::StatusOr<std::optional<RequestRow>> FindRequest(PostgresConnection& connection,
                                                      const std::string& request_id) {
  PostgresParameters parameters;
  parameters.Bytes(request_id);
  const absl::StatusOr<PostgresResult> result = connection.Run(
      "SELECT profile_id, digest, etag, owner, create_time_ns, update_time_ns FROM "
      "stepcast_requests WHERE request_id = $1",
      parameters);
  if (!result.ok()) return result.status();
  if (result->rows() == 0) return std::optional<RequestRow>();
  const auto text = [&](int column) { return std::string(result->Bytes(0, column)); };
  return RequestRow{.profile_id = text(0),
                    .digest = text(1),
                    .etag = text(2),
                    .owner = text(3),
                    .create_time_ns = result->Integer(0, 4),
                    .update_time_ns = std::max(result->Integer(0, 4), result->Integer(0, 5))};
}

absl::Status InsertRequest(PostgresConnection& connection, const std::string& request_id,
                           const RequestRow& row, int64_t max_request_ids) {
  // Numbers are without gaps, which a sequence's would not be: one writes at a time, only the
  // lowest are removed, the next is the highest plus one.
  PostgresParameters parameters;
  parameters.Bytes(request_id)
      .Bytes(row.profile_id)
      .Bytes(row.digest)
      .Bytes(row.etag)
      .Bytes(row.owner)
      .Integer(row.create_time_ns)
      .Integer(row.update_time_ns);
  const absl::StatusOr<PostgresResult> inserted = connection.Run(
      "INSERT INTO stepcast_requests (sequence, request_id, profile_id, digest, etag, owner, "
      "create_time_ns, update_time_ns) "
      "SELECT coalesce(max(sequence), 0) + 1, $1, $2, $3, $4, $5, $6, $7 FROM stepcast_requests "
      "RETURNING sequence",
      parameters);
  if (!inserted.ok()) return inserted.status();
  PostgresParameters oldest;
  oldest.Integer(inserted->Integer(0, 0) - max_request_ids);
  return connection.Run("DELETE FROM stepcast_requests WHERE sequence <= $1", oldest).status();
}

}  // namespace stepcast::server
