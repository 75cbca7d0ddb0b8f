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
#include <string_view>
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

// Progress of operations that are simulated.
struct OperationProgress {
  int64_t done = 0;
  int64_t expected = 0;  // in all; 0: not known
};

struct OperationResult {
  bool is_error = false;
  std::string bytes;
  OperationProgress progress;  // of the attempt that ends it
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

// The state machine of an operation's record: the one of all stores, which only keep the records.
//
// Each function is applied to a record that nobody else may change meanwhile.
// Threads: pure functions of what they are given.

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
                                const OperationResult& result, const OperationTime& now);

absl::Status GiveBack(OperationRecord& record, const OperationAttempt& attempt,
                      const OperationTime& now);

// False: nothing has changed.
bool AskToCancel(OperationRecord& record, const OperationTime& now);

// OK if it may be deleted.
absl::Status CheckDone(const OperationRecord& record);

// NOT_FOUND, reason OPERATION_NOT_FOUND.
absl::Status OperationNotFound(const std::string& id);

struct ShardLoop {
  std::string operation;
  int64_t number = 0;
};

// The parts from `first` to `count` - 1, in that many shards of about as many parts each.
struct ShardPlan {
  int64_t first = 0;
  int64_t count = 0;
  int64_t shards = 0;

  // The first part of a shard, from 0; of `shards`: count.
  int64_t Begin(int64_t shard) const { return first + (count - first) * shard / shards; }
};

// Counts of the shards of all operations.
struct ShardCounts {
  int64_t waiting = 0;  // that nobody has taken
  int64_t open = 0;     // that are not finished, those included
};

// The shards of operations that run: parts of one computation that several replicas share, and what
// came of each.
//
// A computation makes its loops one after the other, the same on every replica, so a loop is known
// by its number. Whoever comes to a loop first says how it is cut. What is written is only ever a
// help: it may be missing, or be written twice, and the same bytes come of it. Bytes that are not
// those that were written are DATA_LOSS, reason STORE_CORRUPT. Rows go with the end
// of their operation. Threads: safe; calls may block. Failure: those of the medium as in
// ProfileStore; NOT_FOUND, reason OPERATION_NOT_FOUND, where the operation does not run any more.
class ShardStore {
 public:
  virtual ~ShardStore() = default;

  // The plan of that loop: the first that anyone offered. REQUIRES: 0 <= first < count; shards from
  // 1 to count - first.
  virtual absl::StatusOr<ShardPlan> Open(const ShardLoop& loop, const ShardPlan& offered) = 0;
  // Takes a shard that nobody has taken, or else one that was taken `patience_ns` ago and is not
  // finished: whoever has it may be slow, or gone. None: nothing is to be done.
  virtual absl::StatusOr<std::optional<int64_t>> Take(const ShardLoop& loop,
                                                      int64_t patience_ns) = 0;
  // The first bytes of a shard stay.
  virtual absl::Status Finish(const ShardLoop& loop, int64_t shard, std::string_view bytes) = 0;
  // The shards that are finished, ascending.
  virtual absl::StatusOr<std::vector<int64_t>> Finished(const ShardLoop& loop) = 0;
  // REQUIRES: it is finished.
  virtual absl::StatusOr<std::string> Read(const ShardLoop& loop, int64_t shard) = 0;

  // The first operation that another replica runs and that has shards which nobody has taken, but
  // those named.
  struct Shared {
    std::string operation;
    std::string request;
  };
  virtual absl::StatusOr<std::optional<Shared>> FindToHelp(
      const std::string& replica, const std::vector<std::string_view>& but) = 0;
  virtual absl::StatusOr<ShardCounts> CountShards() = 0;
};

}  // namespace stepcast::server
