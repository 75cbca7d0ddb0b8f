// The Connection to a server: a Stub, retries of what may be repeated, and waits for operations.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/src/connection.h"
#include "client/src/retry.h"
#include "client/src/stub.h"

namespace stepcast::client {

std::shared_ptr<Connection> MakeRemoteConnection(std::unique_ptr<Stub> stub,
                                                 std::unique_ptr<RetryEnvironment> environment);

// An operation that is done. First looks whether there is such a one, as any call does. From then
// on a failure that may be retried is, whatever the number of attempts that the policy allows, for
// kMaxOutage; unless it allows none. Failure: DEADLINE_EXCEEDED, reason JOB_NOT_DONE, once the
// call's time is over.
absl::StatusOr<google::longrunning::Operation> AwaitOperation(const std::string& name,
                                                              const CallTerms& terms, Stub& stub,
                                                              RetryEnvironment& environment);

// The wait that one WaitOperation asks for, well below the ten minutes that a server waits at most.
inline constexpr std::chrono::nanoseconds kWaitRound = std::chrono::seconds(60);
// A server that starts again is back in seconds; one that recovers its store, or another that takes
// its place, in less than this.
inline constexpr std::chrono::nanoseconds kMaxOutage = std::chrono::seconds(60);

}  // namespace stepcast::client
