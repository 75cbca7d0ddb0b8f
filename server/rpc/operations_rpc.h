// Long-running operations over gRPC: the calls that wait for them, and the computation of a job.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/handlers/operation_handler.h"
#include "server/handlers/prediction_handler.h"
#include "server/operations/operation_runner.h"
#include "server/rpc/calls.h"

namespace stepcast::server {

// Calls that wait for operations to be done, none of which holds a thread.
//
// One thread looks for all of them: when it is woken because an operation of this replica has
// ended, and every kPollNs for what others have done. Threads: Tick is called by one thread at a
// time; the rest is safe. Lifetime: borrows handler and clock; outlives its calls.
class OperationWaiters {
 public:
  static constexpr int64_t kPollNs = 500'000'000;

  OperationWaiters(const OperationHandler& handler, const Clock& clock, int64_t max_waiting)
      : handler_(handler), clock_(clock), max_waiting_(max_waiting) {}

  // Ends the call, at a later Tick: with the operation once it is done, or `seconds` or the call's
  // own time are over; CANCELLED where the caller has gone. RESOURCE_EXHAUSTED, reason
  // TOO_MANY_WAITING, with RetryInfo and the quota subject, if max_waiting do. The call is not to
  // be touched afterwards.
  void Wait(UnaryCall& call, const std::string& name, double seconds);

  // Ends the calls whose time has come, and returns after how many nanoseconds to call it again at
  // the latest.
  int64_t Tick();

  // From now on the next Tick ends every call with UNAVAILABLE, reason SHUTTING_DOWN: to wait would
  // hold up the end of the server.
  void Leave();

 private:
  struct Waiting {
    UnaryCall* call;
    int64_t until_ns;
  };
  using Waitings = std::map<std::string, std::vector<Waiting>>;  // by the name of the operation

  // Ends those of one operation that are at an end, and leaves the others in `waiting`.
  void Look(const std::string& name, std::vector<Waiting>& waiting);
  // To be called before a call is ended: whoever hears of its end may come at once for its place.
  void FreePlace();

  const OperationHandler& handler_;
  const Clock& clock_;
  const int64_t max_waiting_;
  Mutex mutex_;
  Waitings waiting_ STEPCAST_GUARDED_BY(mutex_);
  int64_t count_ STEPCAST_GUARDED_BY(mutex_) = 0;
  bool leaving_ STEPCAST_GUARDED_BY(mutex_) = false;
};

struct JobComputationOptions {
  const PredictionHandler& handler;
  const Clock& clock;
  double max_seconds = 0;  // of one attempt
};

// Checks the request, a serialised StartJobRequest, which may block on the store of profiles. What
// is left gives a serialised reply, equal to the unary method's but for engine_seconds and cached,
// or fails as that does; with DEADLINE_EXCEEDED, reason JOB_TOO_LONG, once it has taken
// max_seconds. Its progress is in steps of kStopCheckInterval. Lifetime: what the options borrow
// outlives the work.
absl::StatusOr<OperationWork> CheckJob(const std::string& request,
                                       const JobComputationOptions& options);

}  // namespace stepcast::server
