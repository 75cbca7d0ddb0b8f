#include "client/src/operation_wait.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "client/src/convert/duration_proto.h"
#include "client/src/local_error.h"
#include "client/src/retry_loop.h"

namespace stepcast::client {

namespace {

using std::chrono::nanoseconds;

// A server may end a wait early; one that always does is not to be asked without a pause.
constexpr nanoseconds kLeastRound = std::chrono::milliseconds(100);

absl::Status NotDone(const std::string& name) {
  return MakeLocalError(absl::StatusCode::kDeadlineExceeded, "JOB_NOT_DONE",
                        absl::StrCat(name, " was not done in time; it goes on"), {{"name", name}});
}

}  // namespace

absl::StatusOr<google::longrunning::Operation> AwaitOperation(const std::string& name,
                                                              const Call& call, Stub& stub,
                                                              RetryEnvironment& environment) {
  const RetryEnvironment::Time start = environment.Now();
  google::longrunning::GetOperationRequest look;
  look.set_name(name);
  absl::StatusOr<google::longrunning::Operation> operation;
  absl::Status status = RetryLoop(call, Repeatable::kYes, environment, [&](nanoseconds timeout) {
    operation = stub.GetOperation(look, timeout);
    return operation.status();
  });
  google::longrunning::WaitOperationRequest wait;
  wait.set_name(name);
  while (status.ok() && !operation->done()) {
    const RetryEnvironment::Time begin = environment.Now();
    const nanoseconds left = call.timeout - (begin - start);
    if (left <= nanoseconds(0)) return NotDone(name);
    ToProto(std::min(left, kWaitRound), *wait.mutable_timeout());
    Call round{.timeout = std::min(left, kWaitRound + kMaxOutage), .retry = call.retry};
    if (round.retry.max_attempts > 1) round.retry.max_attempts = std::numeric_limits<int>::max();
    status = RetryLoop(round, Repeatable::kYes, environment, [&](nanoseconds timeout) {
      operation = stub.WaitOperation(wait, timeout);
      return operation.status();
    });
    if (absl::IsDeadlineExceeded(status) && round.timeout == left) return NotDone(name);
    const bool is_early =
        status.ok() && !operation->done() && environment.Now() - begin < kLeastRound;
    if (is_early) environment.Sleep(std::min(left, kLeastRound));
  }
  if (!status.ok()) return status;
  return operation;
}

}  // namespace stepcast::client
