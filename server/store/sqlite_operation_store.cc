#include "server/store/sqlite_operation_store.h"

#include <utility>

#include "server/store/sqlite_connection.h"

namespace stepcast::server {

absl::StatusOr<std::unique_ptr<SqliteOperationStore>> SqliteOperationStore::Open(
    SqliteDatabase& database, const OperationLimits& limits, const Clock& clock) {
  const absl::Status ended =
      database.Write({.makes_room = true}, [](SqliteDatabase::Writing& writing) {
        absl::Status status = EndAllLeases(*writing);
        return status.ok() ? writing.Commit() : status;
      });
  if (!ended.ok()) return ended;
  return std::unique_ptr<SqliteOperationStore>(new SqliteOperationStore(database, limits, clock));
}

absl::StatusOr<OperationRecord> SqliteOperationStore::Start(const NewOperation& operation) {
  return database_.Write(
      {.bytes = static_cast<int64_t>(operation.request.size())},
      [&](SqliteDatabase::Writing& writing) { return StartOn(writing, operation); });
}

absl::StatusOr<OperationRecord> SqliteOperationStore::StartOn(SqliteDatabase::Writing& writing,
                                                              const NewOperation& operation) {
  absl::StatusOr<OperationRecord> record = NewRecord(operation, Now());
  if (!record.ok()) return record.status();
  if (!operation.request_id.empty()) {
    absl::StatusOr<std::optional<OperationRecord>> first =
        FindOperationOfRequest(*writing, operation);
    if (!first.ok()) return first.status();
    if (first->has_value()) {
      if (absl::Status status = CheckRepetition(**first, operation); !status.ok()) return status;
      return **std::move(first);
    }
  }
  if (!operation.refusal.ok()) return operation.refusal;
  const absl::StatusOr<OperationTotals> totals = ReadOperationTotals(*writing);
  if (!totals.ok()) return totals.status();
  const auto new_bytes = static_cast<int64_t>(operation.request.size());
  if (absl::Status room = CheckRoom(totals->open, totals->bytes, new_bytes, limits_); !room.ok())
    return room;
  if (absl::Status status = InsertOperation(*writing, *record, operation.request); !status.ok())
    return status;
  if (absl::Status status = writing.Commit(); !status.ok()) return status;
  return record;
}

absl::StatusOr<StoredOperation> SqliteOperationStore::Get(const std::string& id) {
  const SqliteConnectionPool::Lease reader = database_.Read();
  SqliteTransaction transaction(*reader, SqliteTransaction::Kind::kRead);
  if (!transaction.status().ok()) return transaction.status();
  absl::StatusOr<std::optional<OperationRecord>> record = FindOperation(*reader, id);
  if (!record.ok()) return record.status();
  if (!record->has_value()) return OperationNotFound(id);
  StoredOperation stored{.record = **std::move(record), .result = {}};
  if (!IsDone(stored.record.state)) return stored;
  absl::StatusOr<std::string> result = ReadOperationBytes(*reader, id);
  if (!result.ok()) return result.status();
  stored.result = *std::move(result);
  return stored;
}

absl::StatusOr<OperationPage> SqliteOperationStore::List(const OperationQuery& query) {
  const SqliteConnectionPool::Lease reader = database_.Read();
  SqliteTransaction transaction(*reader, SqliteTransaction::Kind::kRead);
  if (!transaction.status().ok()) return transaction.status();
  return ListOperations(*reader, query);
}

absl::StatusOr<std::optional<ClaimedOperation>> SqliteOperationStore::Claim(
    const OperationClaim& claim) {
  return database_.Write({},
                         [&](SqliteDatabase::Writing& writing) { return ClaimOn(writing, claim); });
}

absl::StatusOr<std::optional<ClaimedOperation>> SqliteOperationStore::ClaimOn(
    SqliteDatabase::Writing& writing, const OperationClaim& claim) {
  const OperationTime now = Now();
  std::optional<ClaimedOperation> claimed;
  bool changed = false;
  while (!claimed) {
    absl::StatusOr<std::optional<OperationRecord>> found = FindClaimable(*writing, now.lease_ns);
    if (!found.ok()) return found.status();
    if (!found->has_value()) break;
    OperationRecord record = **std::move(found);
    changed = true;
    if (TakeOrEnd(record, claim, limits_, now)) {
      absl::StatusOr<std::string> request = ReadOperationBytes(*writing, record.id);
      if (!request.ok()) return request.status();
      claimed = ClaimedOperation{.record = record, .request = *std::move(request)};
    } else if (absl::Status status = ReplaceOperationBytes(*writing, record.id, ""); !status.ok()) {
      return status;
    }
    if (absl::Status status = UpdateOperation(*writing, record); !status.ok()) return status;
  }
  if (!changed) return claimed;
  if (absl::Status status = writing.Commit(); !status.ok()) return status;
  return claimed;
}

template <typename Change>
absl::StatusOr<OperationRecord> SqliteOperationStore::Update(const std::string& id,
                                                             const SqliteDatabase::Purpose& purpose,
                                                             Change change) {
  return database_.Write(
      purpose, [&](SqliteDatabase::Writing& writing) { return UpdateOn(writing, id, change); });
}

template <typename Change>
absl::StatusOr<OperationRecord> SqliteOperationStore::UpdateOn(SqliteDatabase::Writing& writing,
                                                               const std::string& id,
                                                               Change change) {
  const absl::StatusOr<std::optional<OperationRecord>> found = FindOperation(*writing, id);
  if (!found.ok()) return found.status();
  if (!found->has_value()) return OperationNotFound(id);
  OperationRecord record = **found;
  std::string result;
  if (absl::Status status = change(record, result); !status.ok()) return status;
  if (record == **found) return record;
  if (absl::Status status = UpdateOperation(*writing, record); !status.ok()) return status;
  if (IsDone(record.state)) {
    if (absl::Status status = ReplaceOperationBytes(*writing, id, result); !status.ok())
      return status;
  }
  if (absl::Status status = writing.Commit(); !status.ok()) return status;
  return record;
}

absl::StatusOr<HeartbeatAnswer> SqliteOperationStore::Heartbeat(const OperationAttempt& attempt,
                                                                const OperationProgress& progress,
                                                                int64_t lease_ns) {
  HeartbeatAnswer answer = HeartbeatAnswer::kLost;
  const absl::StatusOr<OperationRecord> record =
      Update(attempt.id, {}, [&](OperationRecord& changed, std::string&) {
        answer = Renew(changed, attempt, progress, Now().lease_ns + lease_ns);
        return absl::OkStatus();
      });
  if (!record.ok() && !absl::IsNotFound(record.status())) return record.status();
  return answer;
}

absl::Status SqliteOperationStore::Finish(const OperationAttempt& attempt,
                                          const OperationResult& result) {
  return Update(attempt.id, {.bytes = static_cast<int64_t>(result.bytes.size())},
                [&](OperationRecord& changed, std::string& bytes) {
                  const absl::StatusOr<bool> takes_result =
                      FinishWith(changed, attempt, result, Now());
                  if (takes_result.ok() && *takes_result) bytes = result.bytes;
                  return takes_result.status();
                })
      .status();
}

absl::Status SqliteOperationStore::Release(const OperationAttempt& attempt) {
  return Update(attempt.id, {},
                [&](OperationRecord& changed, std::string&) {
                  return GiveBack(changed, attempt, Now());
                })
      .status();
}

absl::StatusOr<OperationRecord> SqliteOperationStore::RequestCancel(const std::string& id) {
  return Update(id, {.makes_room = true}, [&](OperationRecord& changed, std::string&) {
    AskToCancel(changed, Now());
    return absl::OkStatus();
  });
}

absl::Status SqliteOperationStore::Delete(const std::string& id) {
  return database_.Write({.makes_room = true},
                         [&](SqliteDatabase::Writing& writing) { return DeleteOn(writing, id); });
}

absl::Status SqliteOperationStore::DeleteOn(SqliteDatabase::Writing& writing,
                                            const std::string& id) {
  const absl::StatusOr<std::optional<OperationRecord>> record = FindOperation(*writing, id);
  if (!record.ok()) return record.status();
  if (!record->has_value()) return OperationNotFound(id);
  if (absl::Status status = CheckDone(**record); !status.ok()) return status;
  if (absl::Status status = DeleteOperation(*writing, id); !status.ok()) return status;
  return writing.Commit();
}

absl::StatusOr<int64_t> SqliteOperationStore::Expire() {
  return database_.Write({.makes_room = true},
                         [&](SqliteDatabase::Writing& writing) { return ExpireOn(writing); });
}

absl::StatusOr<int64_t> SqliteOperationStore::ExpireOn(SqliteDatabase::Writing& writing) {
  absl::StatusOr<int64_t> deleted =
      DeleteExpired(*writing, Now().wall_ns - limits_.retention_ns, limits_.max_done_operations);
  if (!deleted.ok() || *deleted == 0) return deleted;
  if (absl::Status status = writing.Commit(); !status.ok()) return status;
  return deleted;
}

absl::StatusOr<OperationCounts> SqliteOperationStore::Count() {
  const SqliteConnectionPool::Lease reader = database_.Read();
  return CountOperations(*reader, Now().wall_ns);
}

}  // namespace stepcast::server
