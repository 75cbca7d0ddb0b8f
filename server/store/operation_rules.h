// The state machine of an operation's record: the one of all stores, which only keep the records.
//
// Each function is applied to a record that nobody else may change meanwhile.
// Threads: pure functions of what they are given.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/store/operation_store.h"

namespace stepcast::server {

// One moment of a store's clocks.
struct OperationTime {
  int64_t lease_ns = 0;  // for leases; never goes back
  int64_t wall_ns = 0;   // since the Unix epoch
};

// A queued record of today with an id of its own. UNAVAILABLE, reason STORE_UNAVAILABLE, without
// random bits.
absl::StatusOr<OperationRecord> NewRecord(const NewOperation& operation, const OperationTime& now);

// OK if `first`, which has the request_id of `operation`, stands for it too: else INVALID_ARGUMENT,
// reason REQUEST_ID_REUSED.
absl::Status CheckRepetition(const OperationRecord& first, const NewOperation& operation);

// OK if another open operation of so many bytes has room beside what there is.
absl::Status CheckRoom(int64_t open_operations, int64_t bytes, int64_t new_bytes,
                       const OperationLimits& limits);

// True if some replica may take it.
bool IsClaimable(const OperationRecord& record, const OperationTime& now);

// True: the claim has it. False: it was ended instead. REQUIRES: IsClaimable.
bool TakeOrEnd(OperationRecord& record, const OperationClaim& claim, const OperationLimits& limits,
               const OperationTime& now);

// Changes the record unless the answer is kLost.
HeartbeatAnswer Renew(OperationRecord& record, const OperationAttempt& attempt,
                      const OperationProgress& progress, int64_t lease_until_ns);

// OK: the record may have changed. True: the result is its result; false: there is none, or the
// first one stays.
absl::StatusOr<bool> FinishWith(OperationRecord& record, const OperationAttempt& attempt,
                                bool is_error, const OperationTime& now);

absl::Status GiveBack(OperationRecord& record, const OperationAttempt& attempt,
                      const OperationTime& now);

// False: nothing has changed.
bool AskToCancel(OperationRecord& record, const OperationTime& now);

// OK if it may be deleted.
absl::Status CheckDone(const OperationRecord& record);

// NOT_FOUND, reason OPERATION_NOT_FOUND.
absl::Status OperationNotFound(const std::string& id);

}  // namespace stepcast::server
