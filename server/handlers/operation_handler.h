// The handler of JobService and google.longrunning.Operations, in plain types: checks, starts,
// finds, cancels and deletes operations.
//
// Knows nothing of gRPC, proto or threads.
// Threads: safe, as its store is; calls may block on the store.
// Failure: INVALID_ARGUMENT with every fault (reason REQUEST_INVALID), and what OperationStore
// fails with.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/convert/stored_requests.h"
#include "server/store/operation_store.h"
#include "server/store/profile_store.h"

namespace stepcast::server {

class OperationHandler {
 public:
  // The stores are borrowed.
  OperationHandler(OperationStore& store, ProfileStore& profiles)
      : store_(store), profiles_(profiles) {}

  // NOT_FOUND, as a call, where the one profile it is about is not there; a repetition is answered
  // all the same.
  absl::StatusOr<StoredOperation> Start(StartJobCall call, std::string owner) const;
  // `name` of these: operations/{operation}.
  absl::StatusOr<StoredOperation> Get(const std::string& name) const;
  absl::Status Cancel(const std::string& name) const;
  absl::Status Delete(const std::string& name) const;
  absl::StatusOr<ListOperationsAnswer> List(const ListOperationsCall& call) const;

  // The seconds that are to be waited.
  static absl::StatusOr<double> WaitSeconds(const WaitOperationCall& call);

  static constexpr int32_t kDefaultPageSize = 50;
  static constexpr int32_t kMaxPageSize = 1000;
  static constexpr double kMaxWaitSeconds = 600;

 private:
  OperationStore& store_;
  ProfileStore& profiles_;
};

}  // namespace stepcast::server
