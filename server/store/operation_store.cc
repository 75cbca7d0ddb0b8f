#include "server/store/operation_store.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/base/error.h"
#include "server/store/profile_store.h"
#include "server/store/store_error.h"

namespace stepcast::server {

namespace {

constexpr size_t kRandomDigits = 16;

ResourceDetail Resource(const std::string& id) {
  return {.type = "google.longrunning.Operation", .name = absl::StrCat("operations/", id)};
}

bool IsOf(const OperationRecord& record, const OperationAttempt& attempt) {
  return record.attempts == attempt.number && record.replica == attempt.replica &&
         !record.replica.empty();
}

bool IsPresent(const OperationRecord& record, const OperationAttempt& attempt) {
  return record.state == OperationState::kRunning && IsOf(record, attempt);
}

absl::Status Lost(const OperationRecord& record, const OperationAttempt& attempt) {
  return MakeError(
      absl::StatusCode::kAborted,
      absl::StrCat("attempt ", attempt.number, " is not the present one of operations/", record.id),
      {.reason = "OPERATION_LOST",
       .metadata = {{"operation", record.id},
                    {"attempt", absl::StrCat(attempt.number)},
                    {"attempts", absl::StrCat(record.attempts)}},
       .resource = Resource(record.id)});
}

void End(OperationRecord& record, OperationState state, const OperationTime& now) {
  record.state = state;
  record.end_time_ns = now.wall_ns;
  record.lease_until_ns = 0;
}

// Not by the attempt that the record names, which so learns that it has lost it.
void EndWithoutAttempt(OperationRecord& record, OperationState state, const OperationTime& now) {
  record.replica.clear();
  End(record, state, now);
}

}  // namespace

absl::StatusOr<OperationRecord> NewRecord(const NewOperation& operation, const OperationTime& now) {
  const absl::StatusOr<std::string> random = NewEtag();
  if (!random.ok()) return random.status();
  OperationRecord record;
  record.id = absl::StrFormat("o-%016x-%s", now.wall_ns, random->substr(0, kRandomDigits));
  record.method = operation.method;
  record.owner = operation.owner;
  record.request_id = operation.request_id;
  record.request_digest = operation.request_digest;
  record.create_time_ns = now.wall_ns;
  return record;
}

absl::Status CheckRepetition(const OperationRecord& first, const NewOperation& operation) {
  if (first.request_digest == operation.request_digest) return absl::OkStatus();
  const std::string what =
      absl::StrCat("\"", operation.request_id,
                   "\" was used before, for another request (operations/", first.id, ")");
  return MakeError(absl::StatusCode::kInvalidArgument, absl::StrCat("request_id: ", what),
                   {.reason = "REQUEST_ID_REUSED",
                    .metadata = {{"request_id", operation.request_id}, {"operation", first.id}},
                    .faults = {{.field = "request_id", .description = what}}});
}

absl::Status CheckRoom(int64_t open_operations, int64_t bytes, int64_t new_bytes,
                       const OperationLimits& limits) {
  if (open_operations >= limits.max_open_operations)
    return StoreFull("max_open_operations", limits.max_open_operations);
  if (new_bytes > limits.max_operation_store_bytes - bytes)
    return StoreFull("max_operation_store_bytes", limits.max_operation_store_bytes);
  return absl::OkStatus();
}

bool IsClaimable(const OperationRecord& record, const OperationTime& now) {
  return record.state == OperationState::kQueued ||
         (record.state == OperationState::kRunning && record.lease_until_ns <= now.lease_ns);
}

bool TakeOrEnd(OperationRecord& record, const OperationClaim& claim, const OperationLimits& limits,
               const OperationTime& now) {
  if (record.cancel_requested) {
    EndWithoutAttempt(record, OperationState::kCancelled, now);
    return false;
  }
  if (record.attempts - record.released >= limits.max_attempts) {
    EndWithoutAttempt(record, OperationState::kExhausted, now);
    return false;
  }
  record.state = OperationState::kRunning;
  ++record.attempts;
  record.replica = claim.replica;
  record.lease_until_ns = now.lease_ns + claim.lease_ns;
  record.progress = 0;
  record.start_time_ns = now.wall_ns;
  return true;
}

HeartbeatAnswer Renew(OperationRecord& record, const OperationAttempt& attempt,
                      const OperationProgress& progress, int64_t lease_until_ns) {
  if (!IsPresent(record, attempt)) return HeartbeatAnswer::kLost;
  record.progress = progress.done;
  record.expected = progress.expected;
  record.lease_until_ns = lease_until_ns;
  return record.cancel_requested ? HeartbeatAnswer::kCancelled : HeartbeatAnswer::kGoOn;
}

absl::StatusOr<bool> FinishWith(OperationRecord& record, const OperationAttempt& attempt,
                                const OperationResult& result, const OperationTime& now) {
  if (IsDone(record.state) && IsOf(record, attempt)) return false;
  if (!IsPresent(record, attempt)) return Lost(record, attempt);
  record.progress = result.progress.done;
  record.expected = result.progress.expected;
  if (record.cancel_requested) {
    End(record, OperationState::kCancelled, now);
    return false;
  }
  End(record, result.is_error ? OperationState::kFailed : OperationState::kSucceeded, now);
  return true;
}

absl::Status GiveBack(OperationRecord& record, const OperationAttempt& attempt,
                      const OperationTime& now) {
  if (!IsPresent(record, attempt)) return Lost(record, attempt);
  if (record.cancel_requested) {
    End(record, OperationState::kCancelled, now);
    return absl::OkStatus();
  }
  record.state = OperationState::kQueued;
  ++record.released;
  record.replica.clear();
  record.lease_until_ns = 0;
  record.progress = 0;
  record.start_time_ns = 0;
  return absl::OkStatus();
}

bool AskToCancel(OperationRecord& record, const OperationTime& now) {
  if (IsDone(record.state) || record.cancel_requested) return false;
  record.cancel_requested = true;
  if (record.state == OperationState::kQueued)
    EndWithoutAttempt(record, OperationState::kCancelled, now);
  return true;
}

absl::Status CheckDone(const OperationRecord& record) {
  if (IsDone(record.state)) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kFailedPrecondition,
      absl::StrCat("operations/", record.id, " is not done: cancel it, or wait for it"),
      {.reason = "OPERATION_NOT_DONE",
       .metadata = {{"operation", record.id}},
       .resource = Resource(record.id)});
}

absl::Status OperationNotFound(const std::string& id) {
  return MakeError(
      absl::StatusCode::kNotFound, absl::StrCat("there is no operation operations/", id),
      {.reason = "OPERATION_NOT_FOUND", .metadata = {{"operation", id}}, .resource = Resource(id)});
}

}  // namespace stepcast::server
