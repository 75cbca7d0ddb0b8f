#include "server/store/postgres_operation_store.h"

#include <utility>

#include "server/store/postgres_connection.h"
#include "server/store/postgres_operation_rows.h"

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
                      FinishWith(changed, attempt, result.is_error, now);
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

}  // namespace stepcast::server
