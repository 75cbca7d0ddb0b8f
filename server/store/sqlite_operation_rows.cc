#include <algorithm>
#include <limits>
#include <utility>

#include "server/store/sqlite_operation_store.h"

namespace stepcast::server {

namespace {

#define STEPCAST_SELECT_OPERATIONS                                                             \
  "SELECT id, method, owner, request_id, request_digest, state, attempts, released, replica, " \
  "lease_until_ns, progress, cancel_requested, "                                               \
  "create_time_ns, start_time_ns, end_time_ns, byte_count, expected FROM operations "

constexpr char kFindOperation[] = STEPCAST_SELECT_OPERATIONS "WHERE id = ?";
constexpr char kSqliteFindOfRequest[] =
    STEPCAST_SELECT_OPERATIONS "WHERE request_id <> '' AND owner = ? AND request_id = ?";
// Each minimum is one look into the index of states.
constexpr char kFindClaimable[] = STEPCAST_SELECT_OPERATIONS
    "WHERE id = (SELECT min(id) FROM (SELECT min(id) AS id FROM operations WHERE state = 0 UNION "
    "ALL "
    "SELECT min(id) FROM operations WHERE state = 1 AND lease_until_ns <= ?))";
constexpr char kSqliteListOperations[] = STEPCAST_SELECT_OPERATIONS "WHERE id > ? ORDER BY id";
#undef STEPCAST_SELECT_OPERATIONS

constexpr int kByteCountColumn = 15;
constexpr int kExpectedColumn = 16;

OperationRecord RecordAt(const SqliteStatement& row) {
  OperationRecord record;
  record.id = row.BytesAt(0);
  record.method = row.BytesAt(1);
  record.owner = row.BytesAt(2);
  record.request_id = row.BytesAt(3);
  record.request_digest = row.BytesAt(4);
  // A state of a program that does not exist is taken for one that nothing is done with.
  record.state =
      static_cast<OperationState>(std::clamp<int64_t>(row.IntegerAt(5), 0, kOperationStates - 1));
  record.attempts = row.IntegerAt(6);
  record.released = row.IntegerAt(7);
  record.replica = row.BytesAt(8);
  record.lease_until_ns = row.IntegerAt(9);
  record.progress = row.IntegerAt(10);
  record.cancel_requested = row.IntegerAt(11) != 0;
  record.create_time_ns = row.IntegerAt(12);
  record.start_time_ns = row.IntegerAt(13);
  record.end_time_ns = row.IntegerAt(14);
  record.expected = row.IntegerAt(kExpectedColumn);
  return record;
}

absl::StatusOr<std::optional<OperationRecord>> First(SqliteStatement& rows) {
  const absl::StatusOr<bool> found = rows.Step();
  if (!found.ok()) return found.status();
  return *found ? std::optional<OperationRecord>(RecordAt(rows)) : std::nullopt;
}

}  // namespace

absl::StatusOr<std::optional<OperationRecord>> FindOperation(SqliteConnection& connection,
                                                             const std::string& id) {
  SqliteStatement rows = connection.Use(kFindOperation);
  return First(rows.Text(id));
}

absl::StatusOr<std::optional<OperationRecord>> FindOperationOfRequest(
    SqliteConnection& connection, const NewOperation& operation) {
  SqliteStatement rows = connection.Use(kSqliteFindOfRequest);
  return First(rows.Text(operation.owner).Text(operation.request_id));
}

absl::StatusOr<std::optional<OperationRecord>> FindClaimable(SqliteConnection& connection,
                                                             int64_t lease_now_ns) {
  SqliteStatement rows = connection.Use(kFindClaimable);
  return First(rows.Integer(lease_now_ns));
}

absl::StatusOr<std::string> ReadOperationBytes(SqliteConnection& connection,
                                               const std::string& id) {
  SqliteStatement rows = connection.Use("SELECT bytes FROM operation_bytes WHERE operation = ?");
  const absl::StatusOr<bool> found = rows.Text(id).Step();
  if (!found.ok()) return found.status();
  return *found ? rows.BytesAt(0) : std::string();
}

absl::StatusOr<OperationPage> ListOperations(SqliteConnection& connection,
                                             const OperationQuery& query) {
  OperationPage page;
  int64_t bytes = 0;
  SqliteStatement rows = connection.Use(kSqliteListOperations);
  rows.Text(query.after);
  while (true) {
    const absl::StatusOr<bool> found = rows.Step();
    if (!found.ok()) return found.status();
    if (!*found) return page;
    StoredOperation stored{.record = RecordAt(rows), .result = {}};
    const bool is_done = IsDone(stored.record.state);
    if (is_done) bytes += rows.IntegerAt(kByteCountColumn);
    page.more = page.operations.size() == static_cast<size_t>(query.limit) ||
                (!page.operations.empty() && bytes > query.max_bytes);
    if (page.more) return page;
    if (is_done) {
      absl::StatusOr<std::string> result = ReadOperationBytes(connection, stored.record.id);
      if (!result.ok()) return result.status();
      stored.result = *std::move(result);
    }
    page.operations.push_back(std::move(stored));
  }
}

absl::Status InsertOperation(SqliteConnection& connection, const OperationRecord& record,
                             const std::string& request) {
  {
    SqliteStatement insert = connection.Use(
        "INSERT INTO operations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    insert.Text(record.id)
        .Text(record.method)
        .Text(record.owner)
        .Text(record.request_id)
        .Text(record.request_digest);
    insert.Integer(static_cast<int64_t>(record.state))
        .Integer(record.attempts)
        .Integer(record.released)
        .Text(record.replica);
    insert.Integer(record.lease_until_ns)
        .Integer(record.progress)
        .Integer(record.cancel_requested ? 1 : 0);
    insert.Integer(record.create_time_ns).Integer(record.start_time_ns).Integer(record.end_time_ns);
    insert.Integer(static_cast<int64_t>(request.size())).Integer(record.expected);
    if (absl::Status status = insert.Run(); !status.ok()) return status;
  }
  return connection.Use("INSERT INTO operation_bytes VALUES (?, ?)")
      .Text(record.id)
      .Blob(request)
      .Run();
}

absl::Status UpdateOperation(SqliteConnection& connection, const OperationRecord& record) {
  SqliteStatement update = connection.Use(
      "UPDATE operations SET state = ?, attempts = ?, released = ?, replica = ?, lease_until_ns = "
      "?, progress = ?, cancel_requested = ?, "
      "start_time_ns = ?, end_time_ns = ?, expected = ? WHERE id = ?");
  update.Integer(static_cast<int64_t>(record.state))
      .Integer(record.attempts)
      .Integer(record.released)
      .Text(record.replica);
  update.Integer(record.lease_until_ns)
      .Integer(record.progress)
      .Integer(record.cancel_requested ? 1 : 0);
  update.Integer(record.start_time_ns).Integer(record.end_time_ns).Integer(record.expected);
  return update.Text(record.id).Run();
}

absl::Status ReplaceOperationBytes(SqliteConnection& connection, const std::string& id,
                                   const std::string& bytes) {
  {
    SqliteStatement update = connection.Use("UPDATE operations SET byte_count = ? WHERE id = ?");
    if (absl::Status status = update.Integer(static_cast<int64_t>(bytes.size())).Text(id).Run();
        !status.ok())
      return status;
  }
  return connection.Use("UPDATE operation_bytes SET bytes = ? WHERE operation = ?")
      .Blob(bytes)
      .Text(id)
      .Run();
}

absl::Status DeleteOperation(SqliteConnection& connection, const std::string& id) {
  return connection.Use("DELETE FROM operations WHERE id = ?").Text(id).Run();
}

absl::StatusOr<int64_t> DeleteExpired(SqliteConnection& connection, int64_t done_before_ns,
                                      int64_t max_done) {
  const absl::StatusOr<int64_t> before = connection.IntegerOf("SELECT count(*) FROM operations");
  if (!before.ok()) return before.status();
  {
    SqliteStatement old =
        connection.Use("DELETE FROM operations WHERE state > 1 AND end_time_ns <= ?");
    if (absl::Status status = old.Integer(done_before_ns).Run(); !status.ok()) return status;
  }
  {
    SqliteStatement beyond = connection.Use(
        "DELETE FROM operations WHERE id IN (SELECT id FROM operations WHERE state > 1 ORDER BY "
        "end_time_ns DESC, id DESC LIMIT -1 OFFSET ?)");
    if (absl::Status status = beyond.Integer(max_done).Run(); !status.ok()) return status;
  }
  const absl::StatusOr<int64_t> after = connection.IntegerOf("SELECT count(*) FROM operations");
  if (!after.ok()) return after.status();
  return *before - *after;
}

absl::Status EndAllLeases(SqliteConnection& connection) {
  return connection.Use("UPDATE operations SET lease_until_ns = ? WHERE state = 1")
      .Integer(std::numeric_limits<int64_t>::min())
      .Run();
}

absl::StatusOr<OperationTotals> ReadOperationTotals(SqliteConnection& connection) {
  SqliteStatement rows = connection.Use(
      "SELECT count(*) FILTER (WHERE state <= 1), ifnull(sum(byte_count), 0) FROM operations");
  const absl::StatusOr<bool> found = rows.Step();
  if (!found.ok()) return found.status();
  return *found ? OperationTotals{.open = rows.IntegerAt(0), .bytes = rows.IntegerAt(1)}
                : OperationTotals{};
}

absl::StatusOr<OperationCounts> CountOperations(SqliteConnection& connection, int64_t wall_now_ns) {
  OperationCounts counts;
  SqliteStatement rows =
      connection.Use("SELECT state, count(*), min(create_time_ns) FROM operations GROUP BY state");
  while (true) {
    const absl::StatusOr<bool> found = rows.Step();
    if (!found.ok()) return found.status();
    if (!*found) return counts;
    const int64_t state = std::clamp<int64_t>(rows.IntegerAt(0), 0, kOperationStates - 1);
    counts.by_state[state] += rows.IntegerAt(1);
    if (state == 0) counts.oldest_queued_ns = std::max<int64_t>(0, wall_now_ns - rows.IntegerAt(2));
  }
}

}  // namespace stepcast::server
