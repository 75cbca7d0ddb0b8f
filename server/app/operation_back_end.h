// The back end of long-running operations: everything between their store and gRPC, which is what
// computes them, what waits for them, and their two services.
//
// Lifetime: borrows what its constructor is given. To be left before the pools of its calls are
// drained.
#pragma once

#include <grpcpp/impl/service_type.h>

#include <memory>
#include <string>

#include "server/app/server_options.h"
#include "server/handlers/operation_handler.h"
#include "server/handlers/prediction_handler.h"
#include "server/jobs/job_pool.h"
#include "server/metrics/work_metrics.h"
#include "server/operations/operation_runner.h"
#include "server/operations/ticker.h"
#include "server/rpc/call_environment.h"
#include "server/rpc/operation_waiters.h"
#include "server/rpc/services.h"
#include "server/store/operation_store.h"
#include "server/store/profile_store.h"
#include "server/store/shard_store.h"

namespace stepcast::server {

class OperationBackEnd {
 public:
  struct Environment {
    const std::string& replica;  // names this process among the servers of the store
    const CallEnvironment& calls;
    const PredictionHandler& predictions;
    OperationStore& store;
    ShardStore* shards;  // null: no other server is on the store
    ProfileStore& profiles;
    OperationMetrics& metrics;
  };

  OperationBackEnd(const OperationOptions& options, const Environment& environment);
  ~OperationBackEnd();

  grpc::Service& job_service() { return *job_service_; }
  grpc::Service& operations_service() { return *operations_service_; }

  // Gives what is computed here back to the store, for another replica, and ends the calls that
  // wait. Idempotent.
  void Leave();

 private:
  // Each is declared after what it uses.
  const OperationHandler handler_;
  Ticker runner_ticker_;
  Ticker waiter_ticker_;
  OperationWaiters waiters_;
  JobPool jobs_;
  OperationRunner runner_;
  const OperationEnvironment environment_;
  const std::unique_ptr<grpc::Service> job_service_;
  const std::unique_ptr<grpc::Service> operations_service_;
};

}  // namespace stepcast::server
