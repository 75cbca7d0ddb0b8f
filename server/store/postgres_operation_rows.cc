#include <algorithm>
#include <utility>

#include "server/store/postgres_operation_store.h"

namespace stepcast::server {

namespace {

#define STEPCAST_OPERATION                                                              \
  "id, method, owner, request_id, request_digest, state, attempts, released, replica, " \
  "lease_until_ns, progress, cancel_requested, "                                        \
  "create_time_ns, start_time_ns, end_time_ns, expected"

constexpr char kLockOperation[] =
    "SELECT " STEPCAST_OPERATION
    ", stepcast_now_ns() FROM stepcast_operations WHERE id = $1 FOR UPDATE";
constexpr char kLockClaimable[] =
    "SELECT " STEPCAST_OPERATION
    ", stepcast_now_ns() FROM stepcast_operations WHERE state <= 1 AND (state = 0 OR "
    "lease_until_ns <= "
    "(SELECT stepcast_now_ns())) ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED";
constexpr char kPostgresFindOfRequest[] =
    "SELECT " STEPCAST_OPERATION
    " FROM stepcast_operations WHERE request_id <> '' AND owner = $1 AND request_id = $2";
constexpr char kReadOperation[] =
    "SELECT " STEPCAST_OPERATION
    ", bytes FROM stepcast_operations LEFT JOIN stepcast_operation_bytes ON operation = id AND "
    "state > 1 WHERE id = $1";
// One more than the page shows whether there are more; bytes are sent only for those that fit.
constexpr char kPostgresListOperations[] =
    "SELECT " STEPCAST_OPERATION
    ", bytes, bytes_before FROM (SELECT *, (sum(CASE WHEN state > 1 THEN byte_count ELSE 0 END) "
    "OVER (ORDER BY id))::bigint AS bytes_before, "
    "row_number() OVER (ORDER BY id) AS place FROM (SELECT * FROM stepcast_operations WHERE id > "
    "$1 ORDER BY id LIMIT $2 + 1) AS page) AS sums "
    "LEFT JOIN stepcast_operation_bytes ON operation = id AND state > 1 AND (place = 1 OR "
    "bytes_before <= $3) ORDER BY id";
constexpr int kTimeColumn = 16;
constexpr int kBytesColumn = 16;
constexpr int kBytesBeforeColumn = 17;

// One start at a time; the number is "STPC" and one more.
constexpr char kLockStarts[] = "SELECT pg_advisory_xact_lock(1398034500)";

OperationRecord RecordAt(const PostgresResult& result, int row) {
  const auto text = [&](int column) { return std::string(result.Bytes(row, column)); };
  OperationRecord record;
  record.id = text(0);
  record.method = text(1);
  record.owner = text(2);
  record.request_id = text(3);
  record.request_digest = text(4);
  record.state = static_cast<OperationState>(
      std::clamp<int64_t>(result.Integer(row, 5), 0, kOperationStates - 1));
  record.attempts = result.Integer(row, 6);
  record.released = result.Integer(row, 7);
  record.replica = text(8);
  record.lease_until_ns = result.Integer(row, 9);
  record.progress = result.Integer(row, 10);
  record.cancel_requested = result.Integer(row, 11) != 0;
  record.create_time_ns = result.Integer(row, 12);
  record.start_time_ns = result.Integer(row, 13);
  record.end_time_ns = result.Integer(row, 14);
  record.expected = result.Integer(row, 15);
  return record;
}

absl::StatusOr<std::optional<LockedOperation>> FirstLocked(
    const absl::StatusOr<PostgresResult>& result) {
  if (!result.ok()) return result.status();
  if (result->rows() == 0) return std::optional<LockedOperation>();
  return LockedOperation{.record = RecordAt(*result, 0), .now_ns = result->Integer(0, kTimeColumn)};
}

PostgresParameters OfId(const std::string& id) {
  PostgresParameters parameters;
  parameters.Bytes(id);
  return parameters;
}

}  // namespace

absl::StatusOr<std::optional<LockedOperation>> LockOperation(PostgresConnection& connection,
                                                             const std::string& id) {
  return FirstLocked(connection.Run(kLockOperation, OfId(id)));
}

absl::StatusOr<std::optional<LockedOperation>> LockClaimable(PostgresConnection& connection) {
  return FirstLocked(connection.Run(kLockClaimable));
}

absl::StatusOr<OperationRoom> LockStarts(PostgresConnection& connection) {
  if (absl::Status locked = connection.Run(kLockStarts).status(); !locked.ok()) return locked;
  const absl::StatusOr<PostgresResult> result = connection.Run(
      "SELECT count(*) FILTER (WHERE state <= 1), coalesce(sum(byte_count), 0)::bigint, "
      "stepcast_now_ns() FROM stepcast_operations");
  if (!result.ok()) return result.status();
  return OperationRoom{.open = result->Integer(0, 0),
                       .bytes = result->Integer(0, 1),
                       .now_ns = result->Integer(0, 2)};
}

absl::StatusOr<std::optional<OperationRecord>> FindOperationOfRequest(
    PostgresConnection& connection, const NewOperation& operation) {
  PostgresParameters parameters;
  parameters.Bytes(operation.owner).Bytes(operation.request_id);
  const absl::StatusOr<PostgresResult> result = connection.Run(kPostgresFindOfRequest, parameters);
  if (!result.ok()) return result.status();
  return result->rows() == 0 ? std::nullopt : std::optional<OperationRecord>(RecordAt(*result, 0));
}

absl::StatusOr<std::optional<StoredOperation>> ReadOperation(PostgresConnection& connection,
                                                             const std::string& id) {
  const absl::StatusOr<PostgresResult> result = connection.Run(kReadOperation, OfId(id));
  if (!result.ok()) return result.status();
  if (result->rows() == 0) return std::optional<StoredOperation>();
  return StoredOperation{.record = RecordAt(*result, 0),
                         .result = std::string(result->Bytes(0, kBytesColumn))};
}

absl::StatusOr<std::string> ReadOperationBytes(PostgresConnection& connection,
                                               const std::string& id) {
  const absl::StatusOr<PostgresResult> result =
      connection.Run("SELECT bytes FROM stepcast_operation_bytes WHERE operation = $1", OfId(id));
  if (!result.ok()) return result.status();
  return result->rows() == 0 ? std::string() : std::string(result->Bytes(0, 0));
}

absl::StatusOr<OperationPage> ListOperations(PostgresConnection& connection,
                                             const OperationQuery& query) {
  PostgresParameters parameters;
  parameters.Bytes(query.after).Integer(query.limit).Integer(query.max_bytes);
  const absl::StatusOr<PostgresResult> result = connection.Run(kPostgresListOperations, parameters);
  if (!result.ok()) return result.status();
  OperationPage page;
  for (int row = 0; row < result->rows(); ++row) {
    page.more = row == query.limit ||
                (row > 0 && result->Integer(row, kBytesBeforeColumn) > query.max_bytes);
    if (page.more) break;
    page.operations.push_back({.record = RecordAt(*result, row),
                               .result = std::string(result->Bytes(row, kBytesColumn))});
  }
  return page;
}

absl::StatusOr<OperationCounts> CountOperations(PostgresConnection& connection) {
  const absl::StatusOr<PostgresResult> result = connection.Run(
      "SELECT state, count(*), stepcast_now_ns() - min(create_time_ns) FROM stepcast_operations "
      "GROUP BY state");
  if (!result.ok()) return result.status();
  OperationCounts counts;
  for (int row = 0; row < result->rows(); ++row) {
    const int64_t state = std::clamp<int64_t>(result->Integer(row, 0), 0, kOperationStates - 1);
    counts.by_state[state] += result->Integer(row, 1);
    if (state == 0) counts.oldest_queued_ns = std::max<int64_t>(0, result->Integer(row, 2));
  }
  return counts;
}

absl::Status InsertOperation(PostgresConnection& connection, const OperationRecord& record,
                             const std::string& request) {
  PostgresParameters row;
  row.Bytes(record.id)
      .Bytes(record.method)
      .Bytes(record.owner)
      .Bytes(record.request_id)
      .Bytes(record.request_digest);
  row.Integer(static_cast<int64_t>(record.state))
      .Integer(record.attempts)
      .Integer(record.released)
      .Bytes(record.replica);
  row.Integer(record.lease_until_ns)
      .Integer(record.progress)
      .Integer(record.cancel_requested ? 1 : 0);
  row.Integer(record.create_time_ns)
      .Integer(record.start_time_ns)
      .Integer(record.end_time_ns)
      .Integer(static_cast<int64_t>(request.size()))
      .Integer(record.expected);
  absl::Status inserted = connection
                              .Run(
                                  "INSERT INTO stepcast_operations VALUES ($1, $2, $3, $4, $5, $6, "
                                  "$7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)",
                                  row)
                              .status();
  if (!inserted.ok()) return inserted;
  PostgresParameters bytes;
  bytes.Bytes(record.id).Bytes(request);
  return connection.Run("INSERT INTO stepcast_operation_bytes VALUES ($1, $2)", bytes).status();
}

absl::Status UpdateOperation(PostgresConnection& connection, const OperationRecord& record) {
  PostgresParameters row;
  row.Bytes(record.id)
      .Integer(static_cast<int64_t>(record.state))
      .Integer(record.attempts)
      .Integer(record.released)
      .Bytes(record.replica);
  row.Integer(record.lease_until_ns)
      .Integer(record.progress)
      .Integer(record.cancel_requested ? 1 : 0);
  row.Integer(record.start_time_ns).Integer(record.end_time_ns).Integer(record.expected);
  return connection
      .Run(
          "UPDATE stepcast_operations SET state = $2, attempts = $3, released = $4, replica = $5, "
          "lease_until_ns = $6, progress = $7, "
          "cancel_requested = $8, start_time_ns = $9, end_time_ns = $10, expected = $11 WHERE id = "
          "$1",
          row)
      .status();
}

absl::Status ReplaceOperationBytes(PostgresConnection& connection, const std::string& id,
                                   const std::string& bytes) {
  PostgresParameters count;
  count.Bytes(id).Integer(static_cast<int64_t>(bytes.size()));
  absl::Status counted =
      connection.Run("UPDATE stepcast_operations SET byte_count = $2 WHERE id = $1", count)
          .status();
  if (!counted.ok()) return counted;
  PostgresParameters parameters;
  parameters.Bytes(id).Bytes(bytes);
  return connection
      .Run("UPDATE stepcast_operation_bytes SET bytes = $2 WHERE operation = $1", parameters)
      .status();
}

absl::Status DeleteOperation(PostgresConnection& connection, const std::string& id) {
  return connection.Run("DELETE FROM stepcast_operations WHERE id = $1", OfId(id)).status();
}

absl::StatusOr<int64_t> DeleteExpired(PostgresConnection& connection, int64_t retention_ns,
                                      int64_t max_done) {
  PostgresParameters parameters;
  parameters.Integer(retention_ns).Integer(max_done);
  const absl::StatusOr<PostgresResult> result = connection.Run(
      "DELETE FROM stepcast_operations WHERE state > 1 AND (end_time_ns <= stepcast_now_ns() - $1 "
      "OR id IN (SELECT id FROM stepcast_operations "
      "WHERE state > 1 ORDER BY end_time_ns DESC, id DESC OFFSET $2))",
      parameters);
  if (!result.ok()) return result.status();
  return result->changed();
}

}  // namespace stepcast::server
