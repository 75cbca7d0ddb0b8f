#include "server/store/postgres_operation_store.h"

#include <zlib.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "core/base/error.h"
#include "server/store/operation_store.h"
#include "server/store/postgres_connection.h"

namespace stepcast::server {

namespace {

OperationTime At(int64_t now_ns) { return {.lease_ns = now_ns, .wall_ns = now_ns}; }

}  // namespace

absl::StatusOr<OperationRecord> PostgresOperationStore::Start(const NewOperation& operation) {
  return connections_.Run(
      [&](PostgresConnection& connection) { return StartOn(connection, operation); });
}

absl::StatusOr<OperationRecord> PostgresOperationStore::StartOn(
    PostgresConnection& connection, const NewOperation& operation) const {
  PostgresTransaction transaction(connection);
  if (!transaction.status().ok()) return transaction.status();
  const absl::StatusOr<OperationRoom> room = LockStarts(connection);
  if (!room.ok()) return room.status();
  if (!operation.request_id.empty()) {
    absl::StatusOr<std::optional<OperationRecord>> first =
        FindOperationOfRequest(connection, operation);
    if (!first.ok()) return first.status();
    if (first->has_value()) {
      if (absl::Status status = CheckRepetition(**first, operation); !status.ok()) return status;
      return **std::move(first);
    }
  }
  if (!operation.refusal.ok()) return operation.refusal;
  const absl::Status fits =
      CheckRoom(room->open, room->bytes, static_cast<int64_t>(operation.request.size()), limits_);
  if (!fits.ok()) return fits;
  absl::StatusOr<OperationRecord> record = NewRecord(operation, At(room->now_ns));
  if (!record.ok()) return record.status();
  if (absl::Status status = InsertOperation(connection, *record, operation.request); !status.ok())
    return status;
  if (absl::Status status = transaction.Commit(); !status.ok()) return status;
  return record;
}

absl::StatusOr<StoredOperation> PostgresOperationStore::Get(const std::string& id) {
  const absl::StatusOr<PostgresConnectionPool::Lease> connection = connections_.Take();
  if (!connection.ok()) return connection.status();
  absl::StatusOr<std::optional<StoredOperation>> operation = ReadOperation(**connection, id);
  if (!operation.ok()) return operation.status();
  if (!operation->has_value()) return OperationNotFound(id);
  return **std::move(operation);
}

absl::StatusOr<OperationPage> PostgresOperationStore::List(const OperationQuery& query) {
  const absl::StatusOr<PostgresConnectionPool::Lease> connection = connections_.Take();
  if (!connection.ok()) return connection.status();
  return ListOperations(**connection, query);
}

absl::StatusOr<std::optional<ClaimedOperation>> PostgresOperationStore::ClaimOn(
    PostgresConnection& connection, const OperationClaim& claim) const {
  PostgresTransaction transaction(connection);
  if (!transaction.status().ok()) return transaction.status();
  absl::StatusOr<std::optional<LockedOperation>> found = LockClaimable(connection);
  if (!found.ok()) return found.status();
  if (!found->has_value()) return std::optional<ClaimedOperation>();
  ClaimedOperation claimed{.record = (*found)->record, .request = {}};
  if (TakeOrEnd(claimed.record, claim, limits_, At((*found)->now_ns))) {
    absl::StatusOr<std::string> request = ReadOperationBytes(connection, claimed.record.id);
    if (!request.ok()) return request.status();
    claimed.request = *std::move(request);
  } else if (absl::Status status = ReplaceOperationBytes(connection, claimed.record.id, "");
             !status.ok()) {
    return status;
  }
  if (absl::Status status = UpdateOperation(connection, claimed.record); !status.ok())
    return status;
  if (absl::Status status = transaction.Commit(); !status.ok()) return status;
  return claimed;
}

absl::StatusOr<std::optional<ClaimedOperation>> PostgresOperationStore::Claim(
    const OperationClaim& claim) {
  while (true) {
    absl::StatusOr<std::optional<ClaimedOperation>> claimed = connections_.Run(
        [&](PostgresConnection& connection) { return ClaimOn(connection, claim); });
    if (!claimed.ok() || !claimed->has_value() || !IsDone((*claimed)->record.state)) return claimed;
  }
}

template <typename Change>
absl::StatusOr<OperationRecord> PostgresOperationStore::Update(const std::string& id,
                                                               Change change) {
  return connections_.Run([&](PostgresConnection& connection) -> absl::StatusOr<OperationRecord> {
    PostgresTransaction transaction(connection);
    if (!transaction.status().ok()) return transaction.status();
    const absl::StatusOr<std::optional<LockedOperation>> found = LockOperation(connection, id);
    if (!found.ok()) return found.status();
    if (!found->has_value()) return OperationNotFound(id);
    OperationRecord record = (*found)->record;
    std::string result;
    if (absl::Status status = change(record, result, At((*found)->now_ns)); !status.ok())
      return status;
    if (record == (*found)->record) return record;
    if (absl::Status status = UpdateOperation(connection, record); !status.ok()) return status;
    if (IsDone(record.state)) {
      if (absl::Status status = ReplaceOperationBytes(connection, id, result); !status.ok())
        return status;
    }
    if (absl::Status status = transaction.Commit(); !status.ok()) return status;
    return record;
  });
}

absl::StatusOr<HeartbeatAnswer> PostgresOperationStore::Heartbeat(const OperationAttempt& attempt,
                                                                  const OperationProgress& progress,
                                                                  int64_t lease_ns) {
  HeartbeatAnswer answer = HeartbeatAnswer::kLost;
  const absl::StatusOr<OperationRecord> record =
      Update(attempt.id, [&](OperationRecord& changed, std::string&, const OperationTime& now) {
        answer = Renew(changed, attempt, progress, now.lease_ns + lease_ns);
        return absl::OkStatus();
      });
  if (!record.ok() && !absl::IsNotFound(record.status())) return record.status();
  return answer;
}

absl::Status PostgresOperationStore::Finish(const OperationAttempt& attempt,
                                            const OperationResult& result) {
  return Update(attempt.id,
                [&](OperationRecord& changed, std::string& bytes, const OperationTime& now) {
                  const absl::StatusOr<bool> takes_result =
                      FinishWith(changed, attempt, result, now);
                  if (takes_result.ok() && *takes_result) bytes = result.bytes;
                  return takes_result.status();
                })
      .status();
}

absl::Status PostgresOperationStore::Release(const OperationAttempt& attempt) {
  return Update(attempt.id,
                [&](OperationRecord& changed, std::string&, const OperationTime& now) {
                  return GiveBack(changed, attempt, now);
                })
      .status();
}

absl::StatusOr<OperationRecord> PostgresOperationStore::RequestCancel(const std::string& id) {
  return Update(id, [](OperationRecord& changed, std::string&, const OperationTime& now) {
    AskToCancel(changed, now);
    return absl::OkStatus();
  });
}

absl::Status PostgresOperationStore::Delete(const std::string& id) {
  return connections_.Run([&](PostgresConnection& connection) { return DeleteOn(connection, id); });
}

absl::Status PostgresOperationStore::DeleteOn(PostgresConnection& connection,
                                              const std::string& id) const {
  PostgresTransaction transaction(connection);
  if (!transaction.status().ok()) return transaction.status();
  const absl::StatusOr<std::optional<LockedOperation>> found = LockOperation(connection, id);
  if (!found.ok()) return found.status();
  if (!found->has_value()) return OperationNotFound(id);
  if (absl::Status status = CheckDone((*found)->record); !status.ok()) return status;
  if (absl::Status status = DeleteOperation(connection, id); !status.ok()) return status;
  return transaction.Commit();
}

absl::StatusOr<int64_t> PostgresOperationStore::Expire() {
  const absl::StatusOr<PostgresConnectionPool::Lease> connection = connections_.Take();
  if (!connection.ok()) return connection.status();
  return DeleteExpired(**connection, limits_.retention_ns, limits_.max_done_operations);
}

absl::StatusOr<OperationCounts> PostgresOperationStore::Count() {
  const absl::StatusOr<PostgresConnectionPool::Lease> connection = connections_.Take();
  if (!connection.ok()) return connection.status();
  return CountOperations(**connection);
}

namespace {

// The operation's row is held so that its end, which deletes loops, comes before or after.
constexpr char kAddLoop[] =
    "INSERT INTO stepcast_loops SELECT id, $2, $3, $4, $5 FROM (SELECT id FROM stepcast_operations "
    "WHERE id = $1 AND state = 1 FOR KEY SHARE) AS running ON CONFLICT DO NOTHING";
constexpr char kAddShards[] =
    "INSERT INTO stepcast_shards SELECT $1, $2, shard, 0, NULL FROM generate_series(0, $3 - 1) AS "
    "shard";
constexpr char kReadLoop[] =
    "SELECT first, count, shards FROM stepcast_loops WHERE operation = $1 AND loop = $2";
constexpr char kTakeShard[] =
    "UPDATE stepcast_shards SET taken_ns = stepcast_now_ns() WHERE operation = $1 AND loop = $2 "
    "AND shard = (SELECT shard FROM stepcast_shards WHERE operation = $1 AND loop = $2 AND bytes "
    "IS NULL AND taken_ns <= stepcast_now_ns() - $3 ORDER BY taken_ns, shard LIMIT 1 FOR UPDATE "
    "SKIP LOCKED) RETURNING shard";
constexpr char kFinishShard[] =
    "UPDATE stepcast_shards SET bytes = $4 WHERE operation = $1 AND loop = $2 AND shard = $3 AND "
    "bytes IS NULL";
constexpr char kFindToHelp[] =
    "SELECT id, bytes FROM stepcast_operations JOIN stepcast_operation_bytes ON operation = id "
    "WHERE state = 1 AND replica <> $1 AND id <> ALL ($2) AND cancel_requested = 0 AND EXISTS "
    "(SELECT FROM "
    "stepcast_shards AS s WHERE s.operation = id AND s.bytes IS NULL AND s.taken_ns = 0) ORDER BY "
    "id LIMIT 1";

constexpr size_t kChecksumBytes = 8;

// The checksum in hexadecimal digits, which stand before the bytes.
std::string Checksum(std::string_view bytes) {
  const uLong sum = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  return absl::StrCat(absl::Hex(sum, absl::kZeroPad8));
}

PostgresParameters Of(const ShardLoop& loop) {
  PostgresParameters parameters;
  parameters.Bytes(loop.operation).Integer(loop.number);
  return parameters;
}

absl::StatusOr<ShardPlan> OpenOn(PostgresConnection& connection, const ShardLoop& loop,
                                 const ShardPlan& offered) {
  PostgresTransaction transaction(connection);
  if (!transaction.status().ok()) return transaction.status();
  PostgresParameters plan = Of(loop);
  plan.Integer(offered.first).Integer(offered.count).Integer(offered.shards);
  const absl::StatusOr<PostgresResult> added = connection.Run(kAddLoop, plan);
  if (!added.ok()) return added.status();
  if (added->changed() > 0) {
    PostgresParameters shards = Of(loop);
    shards.Integer(offered.shards);
    if (absl::Status status = connection.Run(kAddShards, shards).status(); !status.ok())
      return status;
    if (absl::Status status = transaction.Commit(); !status.ok()) return status;
    return offered;
  }
  const absl::StatusOr<PostgresResult> first = connection.Run(kReadLoop, Of(loop));
  if (!first.ok()) return first.status();
  if (first->rows() == 0) return OperationNotFound(loop.operation);
  return ShardPlan{
      .first = first->Integer(0, 0), .count = first->Integer(0, 1), .shards = first->Integer(0, 2)};
}

}  // namespace

absl::StatusOr<ShardPlan> PostgresShardStore::Open(const ShardLoop& loop,
                                                   const ShardPlan& offered) {
  return connections_.Run(
      [&](PostgresConnection& connection) { return OpenOn(connection, loop, offered); });
}

absl::StatusOr<std::optional<int64_t>> PostgresShardStore::Take(const ShardLoop& loop,
                                                                int64_t patience_ns) {
  PostgresParameters parameters = Of(loop);
  parameters.Integer(patience_ns);
  const absl::StatusOr<PostgresResult> taken = connections_.Run(
      [&](PostgresConnection& connection) { return connection.Run(kTakeShard, parameters); });
  if (!taken.ok()) return taken.status();
  return taken->rows() == 0 ? std::nullopt : std::optional<int64_t>(taken->Integer(0, 0));
}

absl::Status PostgresShardStore::Finish(const ShardLoop& loop, int64_t shard,
                                        std::string_view bytes) {
  PostgresParameters parameters = Of(loop);
  const std::string summed = absl::StrCat(Checksum(bytes), std::string(bytes));
  parameters.Integer(shard).Bytes(summed);
  return connections_
      .Run([&](PostgresConnection& connection) { return connection.Run(kFinishShard, parameters); })
      .status();
}

absl::StatusOr<std::vector<int64_t>> PostgresShardStore::Finished(const ShardLoop& loop) {
  const absl::StatusOr<PostgresConnectionPool::Lease> connection = connections_.Take();
  if (!connection.ok()) return connection.status();
  const absl::StatusOr<PostgresResult> result =
      (*connection)
          ->Run(
              "SELECT shard FROM stepcast_shards WHERE operation = $1 AND loop = $2 AND bytes IS "
              "NOT NULL "
              "ORDER BY shard",
              Of(loop));
  if (!result.ok()) return result.status();
  std::vector<int64_t> finished(static_cast<size_t>(result->rows()));
  for (int row = 0; row < result->rows(); ++row)
    finished[static_cast<size_t>(row)] = result->Integer(row, 0);
  return finished;
}

absl::StatusOr<std::string> PostgresShardStore::Read(const ShardLoop& loop, int64_t shard) {
  const absl::StatusOr<PostgresConnectionPool::Lease> connection = connections_.Take();
  if (!connection.ok()) return connection.status();
  PostgresParameters parameters = Of(loop);
  parameters.Integer(shard);
  const absl::StatusOr<PostgresResult> result =
      (*connection)
          ->Run(
              "SELECT bytes FROM stepcast_shards WHERE operation = $1 AND loop = $2 AND shard = $3",
              parameters);
  if (!result.ok()) return result.status();
  if (result->rows() == 0) return OperationNotFound(loop.operation);
  const std::string_view summed = result->Bytes(0, 0);
  if (summed.size() < kChecksumBytes ||
      Checksum(summed.substr(kChecksumBytes)) != absl::string_view(summed.data(), kChecksumBytes)) {
    return MakeError(absl::StatusCode::kDataLoss,
                     absl::StrCat("the bytes of shard ", shard, " are not those that were written"),
                     {.reason = "STORE_CORRUPT"});
  }
  return std::string(summed.substr(kChecksumBytes));
}

absl::StatusOr<std::optional<ShardStore::Shared>> PostgresShardStore::FindToHelp(
    const std::string& replica, const std::vector<std::string_view>& but) {
  const absl::StatusOr<PostgresConnectionPool::Lease> connection = connections_.Take();
  if (!connection.ok()) return connection.status();
  PostgresParameters parameters;
  parameters.Bytes(replica).BytesArray(but);
  const absl::StatusOr<PostgresResult> result = (*connection)->Run(kFindToHelp, parameters);
  if (!result.ok()) return result.status();
  if (result->rows() == 0) return std::optional<Shared>();
  return Shared{.operation = std::string(result->Bytes(0, 0)),
                .request = std::string(result->Bytes(0, 1))};
}

absl::StatusOr<ShardCounts> PostgresShardStore::CountShards() {
  const absl::StatusOr<PostgresConnectionPool::Lease> connection = connections_.Take();
  if (!connection.ok()) return connection.status();
  const absl::StatusOr<PostgresResult> result =
      (*connection)
          ->Run(
              "SELECT count(*) FILTER (WHERE taken_ns = 0), count(*) FROM stepcast_shards WHERE "
              "bytes IS "
              "NULL");
  if (!result.ok()) return result.status();
  return ShardCounts{.waiting = result->Integer(0, 0), .open = result->Integer(0, 1)};
}

}  // namespace stepcast::server
