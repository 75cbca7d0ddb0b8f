// The store of long-running operations, behind one interface: a queue that any replica takes from,
// and what became of each.
//
// Requests and results are bytes the store does not look into. A replica takes an operation for a
// lease and renews that; when it does not, another one may take it. Every taking is an attempt with
// a number of its own, and only the present attempt may end the operation, so it has one end. Time:
// leases run on the store's own clock, so the replicas' clocks do not matter. Threads: safe. Calls
// may block, so they belong on a pool, never in a reactor. Failure: the codes named below, and
// those of the medium as in ProfileStore. A call that failed has changed nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stepcast::server {

// The limits of a store of operations: the most it holds, and for how long.
// Reaching one of the first two is RESOURCE_EXHAUSTED, reason STORE_FULL, with the
// field's name as quota subject.
struct OperationLimits {
  int64_t max_open_operations = 10'000;  // that are not done
  int64_t max_operation_store_bytes =
      int64_t{1}
      << 30;  // of requests of open and results of done ones; looked at when one is started
  int64_t max_done_operations = 10'000;  // beyond it those go that were done first
  int64_t retention_ns = int64_t{7} * 24 * 3600 * 1'000'000'000;
  int64_t max_attempts = 5;  // REQUIRES: above 0
};

// The state of an operation.
// From kSucceeded on it is done, and never changes again.
// Stored, so the numbers stay.
enum class OperationState : uint8_t {
  kQueued = 0,
  kRunning = 1,
  kSucceeded = 2,  // the result is its response
  kFailed = 3,     // the result is its error
  kCancelled = 4,  // no result
  kExhausted = 5,  // no result: every attempt was begun and none came to an end
};
inline constexpr int kOperationStates = 6;

inline bool IsDone(OperationState state) { return state >= OperationState::kSucceeded; }

// All that is known of an operation but its bytes. Times are 0 where they have not come.
struct OperationRecord {
  std::string id;  // of later ones greater, bytewise, as far as the clock goes
  std::string method;
  std::string owner;           // the client that started it
  std::string request_id;      // empty: none
  std::string request_digest;  // tells equal requests from others
  OperationState state = OperationState::kQueued;
  int64_t attempts = 0;        // begun; the number of the present or last one
  int64_t released = 0;        // of those, given back unharmed
  std::string replica;         // that has the present attempt, or ended it
  int64_t lease_until_ns = 0;  // on the store's clock for leases; while running
  int64_t progress = 0;        // as the present attempt last said
  int64_t expected = 0;        // of the whole, as the last attempt expects; 0: not known
  bool cancel_requested = false;
  int64_t create_time_ns = 0;  // since the Unix epoch, as the next two
  int64_t start_time_ns = 0;   // of the present or last attempt
  int64_t end_time_ns = 0;

  friend bool operator==(const OperationRecord&, const OperationRecord&) = default;
};

struct NewOperation {
  std::string method;
  std::string owner;
  std::string request_id;
  std::string request_digest;
  std::string request;
  absl::Status refusal;  // not OK: it must not be started; what was started under its request_id
                         // before is its answer all the same
};

struct StoredOperation {
  OperationRecord record;
  std::string result;
};

struct OperationQuery {
  std::string after;                     // ids greater than this, bytewise
  int limit = 50;                        // REQUIRES: above 0
  int64_t max_bytes = int64_t{3} << 20;  // of results; one operation is given even if it has more
};

struct OperationPage {
  std::vector<StoredOperation> operations;  // ascending by id
  bool more = false;
};

struct OperationClaim {
  std::string replica;
  int64_t lease_ns = 0;
};

struct ClaimedOperation {
  OperationRecord record;
  std::string request;
};

// One taking of one operation.
struct OperationAttempt {
  std::string id;
  std::string replica;
  int64_t number = 0;
};

enum class HeartbeatAnswer : uint8_t {
  kGoOn,
  kCancelled,  // go on holding it, but only to finish it
  kLost,       // done, deleted, or another's
};

// Of operations that are simulated.
struct OperationProgress {
  int64_t done = 0;
  int64_t expected = 0;  // in all; 0: not known
};

struct OperationResult {
  bool is_error = false;
  std::string bytes;
};

struct OperationCounts {
  int64_t by_state[kOperationStates] = {};
  int64_t oldest_queued_ns = 0;  // that the first in the queue has waited; 0: none does
};

class OperationStore {
 public:
  virtual ~OperationStore() = default;

  // Queues it. With a request_id its owner has used for an operation that is still kept: returns
  // that one, or fails with INVALID_ARGUMENT, reason REQUEST_ID_REUSED, if its digest is another.
  // Else its refusal, where it has one. RESOURCE_EXHAUSTED, reason STORE_FULL, with the quota
  // subject, at a limit.
  virtual absl::StatusOr<OperationRecord> Start(const NewOperation& operation) = 0;
  // NOT_FOUND, reason OPERATION_NOT_FOUND, with the resource.
  virtual absl::StatusOr<StoredOperation> Get(const std::string& id) = 0;
  virtual absl::StatusOr<OperationPage> List(const OperationQuery& query) = 0;

  // Takes the first that is queued or whose lease has run out; none: there is none. Those among
  // them that were to be cancelled, or have used up their attempts, it ends.
  virtual absl::StatusOr<std::optional<ClaimedOperation>> Claim(const OperationClaim& claim) = 0;
  // Renews the lease of the present attempt, even one that has run out and was not taken since.
  virtual absl::StatusOr<HeartbeatAnswer> Heartbeat(const OperationAttempt& attempt,
                                                    const OperationProgress& progress,
                                                    int64_t lease_ns) = 0;
  // Ends the operation: with CANCELLED if that was asked for, else with `result`. Repeated by the
  // attempt that ended it, OK, and the first end stays. ABORTED, reason OPERATION_LOST, if the
  // attempt is not the present one.
  virtual absl::Status Finish(const OperationAttempt& attempt, const OperationResult& result) = 0;
  // Gives the operation back to the queue, or ends it if it was to be cancelled; this attempt does
  // not count against their limit. ABORTED as Finish.
  virtual absl::Status Release(const OperationAttempt& attempt) = 0;

  // One that is queued is done at once, one that runs will be; one that is done stays as it is.
  // NOT_FOUND as Get.
  virtual absl::StatusOr<OperationRecord> RequestCancel(const std::string& id) = 0;
  // NOT_FOUND as Get; FAILED_PRECONDITION, reason OPERATION_NOT_DONE.
  virtual absl::Status Delete(const std::string& id) = 0;
  // Deletes those that were done longer ago than the limits say, or are too many; returns how many.
  virtual absl::StatusOr<int64_t> Expire() = 0;
  virtual absl::StatusOr<OperationCounts> Count() = 0;
};

}  // namespace stepcast::server
