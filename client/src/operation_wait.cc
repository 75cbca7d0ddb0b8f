#include "client/src/operation_wait.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "client/src/error_status.h"
#include "client/src/retry_loop.h"

namespace stepcast::client {

namespace {

using google::protobuf::util::TimeUtil;
using std::chrono::nanoseconds;

// A server may end a wait early; one that always does is not to be asked without a pause.
constexpr nanoseconds kMinRound = std::chrono::milliseconds(100);

absl::Status NotDone(const std::string& name) {
  return MakeLocalError(absl::StatusCode::kDeadlineExceeded, "JOB_NOT_DONE",
                        absl::StrCat(name, " was not done in time; it goes on"), {{"name", name}});
}

}  // namespace

absl::StatusOr<google::longrunning::Operation> AwaitOperation(const std::string& name,
                                                              const CallTerms& terms, Stub& stub,
                                                              RetryEnvironment& environment) {
  const RetryEnvironment::Time start = environment.Now();
  google::longrunning::GetOperationRequest look;
  look.set_name(name);
  google::longrunning::Operation operation;
  absl::Status status = RetryLoop(terms, Repeatable::kYes, environment, [&](nanoseconds timeout) {
    return stub.Call(MethodOf(*look.GetDescriptor()), look, operation, timeout);
  });
  google::longrunning::WaitOperationRequest wait;
  wait.set_name(name);
  while (status.ok() && !operation.done()) {
    const RetryEnvironment::Time begin = environment.Now();
    const nanoseconds left = terms.timeout - (begin - start);
    if (left <= nanoseconds(0)) return NotDone(name);
    *wait.mutable_timeout() = TimeUtil::NanosecondsToDuration(std::min(left, kWaitRound).count());
    CallTerms round{.timeout = std::min(left, kWaitRound + kMaxOutage), .retry = terms.retry};
    if (round.retry.max_attempts > 1) round.retry.max_attempts = std::numeric_limits<int>::max();
    status = RetryLoop(round, Repeatable::kYes, environment, [&](nanoseconds timeout) {
      return stub.Call(MethodOf(*wait.GetDescriptor()), wait, operation, timeout);
    });
    if (absl::IsDeadlineExceeded(status) && round.timeout == left) return NotDone(name);
    const bool is_early = status.ok() && !operation.done() && environment.Now() - begin < kMinRound;
    if (is_early) environment.Sleep(std::min(left, kMinRound));
  }
  if (!status.ok()) return status;
  return operation;
}

}  // namespace stepcast::client
