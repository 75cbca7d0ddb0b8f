// The back end: everything between the stores and gRPC, which is handlers, job pools and services.
#pragma once

#include <grpcpp/impl/service_type.h>

#include <memory>
#include <string>

#include "server/app/call_log.h"
#include "server/app/log.h"
#include "server/app/server_options.h"
#include "server/app/stores.h"
#include "server/base/clock.h"
#include "server/handlers/engine_run.h"
#include "server/handlers/operation_handler.h"
#include "server/handlers/prediction_handler.h"
#include "server/handlers/profile_handler.h"
#include "server/jobs/job_admission.h"
#include "server/jobs/job_pool.h"
#include "server/jobs/pool_executor.h"
#include "server/metrics/server_metrics.h"
#include "server/metrics/work_metrics.h"
#include "server/operations/operation_runner.h"
#include "server/rpc/call_environment.h"
#include "server/rpc/call_gate.h"
#include "server/rpc/operations_rpc.h"
#include "server/rpc/services.h"
#include "server/store/operation_store.h"
#include "server/store/profile_store.h"
#include "server/store/profile_store_layers.h"

namespace stepcast::server {

// The back end of long-running operations: everything between their store and gRPC, which is what
// computes them, what waits for them, and their two services.
//
// Lifetime: borrows what its constructor is given. To be left before the pools of its calls are
// drained.
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

  // The operations that compute here, and those that wait for a thread.
  std::vector<JobListing> List() const { return jobs_.List(); }

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

// A pair of observers of one job pool, both of which are told.
class JobObserverPair final : public JobObserver {
 public:
  // Borrows both; the second may be null.
  JobObserverPair(JobObserver& first, JobObserver* second) : first_(first), second_(second) {}

  void OnQueued(size_t queue_length) override {
    first_.OnQueued(queue_length);
    if (second_ != nullptr) second_->OnQueued(queue_length);
  }
  void OnRefused() override {
    first_.OnRefused();
    if (second_ != nullptr) second_->OnRefused();
  }
  void OnDropped() override {
    first_.OnDropped();
    if (second_ != nullptr) second_->OnDropped();
  }
  void OnStarted(size_t queue_length, double wait_seconds) override {
    first_.OnStarted(queue_length, wait_seconds);
    if (second_ != nullptr) second_->OnStarted(queue_length, wait_seconds);
  }
  void OnDone(double run_seconds) override {
    first_.OnDone(run_seconds);
    if (second_ != nullptr) second_->OnDone(run_seconds);
  }

 private:
  JobObserver& first_;
  JobObserver* const second_;
};

// The back end: everything between the stores and gRPC, which is handlers, job pools and the
// services.
//
// Lifetime: borrows what its constructor is given. To be drained before it is destroyed, when no
// call is left.
class BackEnd {
 public:
  // Borrowed.
  struct Environment {
    const std::string& replica;  // names this process among the servers of a store
    const Clock& clock;
    Log& log;
    ServerMetrics& metrics;
    CallGate& gate;
    Stores& stores;
  };

  BackEnd(const ServerOptions& options, const Environment& environment);

  grpc::Service& profile_service() { return *profile_service_; }
  grpc::Service& prediction_service() { return *prediction_service_; }
  grpc::Service& admin_service() { return *admin_service_; }
  OperationBackEnd& operations() { return operations_; }
  // OK while the store can serve.
  absl::Status Check() { return store_.Check(); }
  // Takes over the limits that may change while calls are under way, of the queues, of the bytes of
  // requests and of the store, and the settings that are told.
  void SetLimits(const ServerOptions& options);
  // Returns when the jobs there are have run; more are refused.
  void Drain();

 private:
  // Each is declared after what it uses.
  ObservedProfileStore observed_;
  CachedProfileStore store_;
  JobObserverPair simulation_observer_;
  JobPool store_jobs_;
  JobPool simulation_jobs_;
  const PoolExecutor executor_;
  const ProfileHandler profiles_;
  RunCache runs_;
  const PredictionHandler predictions_;
  ByteBudget budget_;
  CostModel costs_;
  CallLog call_log_;
  const CallEnvironment environment_;
  Mutex settings_mutex_;
  std::map<std::string, std::string> settings_ STEPCAST_GUARDED_BY(settings_mutex_);
  const std::unique_ptr<grpc::Service> profile_service_;
  const std::unique_ptr<grpc::Service> prediction_service_;
  const std::unique_ptr<grpc::Service> admin_service_;
  OperationBackEnd operations_;
};

}  // namespace stepcast::server
