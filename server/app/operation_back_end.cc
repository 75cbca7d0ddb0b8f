#include "server/app/operation_back_end.h"

#include <algorithm>

#include "server/convert/operation_convert.h"
#include "server/rpc/job_computation.h"
#include "server/rpc/services.h"

namespace stepcast::server {

namespace {

OperationRunnerOptions RunnerOptions(const OperationOptions& options, const std::string& replica) {
  return {.replica = replica,
          .max_running = options.max_running,
          .lease_ns = static_cast<int64_t>(options.lease_seconds * 1e9)};
}

}  // namespace

OperationBackEnd::OperationBackEnd(const OperationOptions& options, const Environment& environment)
    : handler_(environment.store, environment.profiles),
      waiters_(handler_, environment.calls.clock, options.max_waiting_calls),
      // A thread for each operation that this server has, and for each that it helps with.
      jobs_({.threads = 2 * std::max(1, options.max_running),
             .queue_max = 2 * static_cast<size_t>(std::max(1, options.max_running)),
             .nice = kSimulationNice}),
      runner_(
          RunnerOptions(options, environment.replica),
          {.store = environment.store,
           .shards = environment.shards,
           .checking = environment.calls.store_jobs,
           .computing = jobs_,
           .clock = environment.calls.clock,
           .observer = environment.metrics,
           .has_capacity = [&calls = environment.calls] { return calls.simulation_jobs.HasIdle(); },
           .check = [job = JobComputationOptions{.handler = environment.predictions,
                                                 .clock = environment.calls.clock,
                                                 .max_seconds = options.max_seconds}](
                        const std::string& request) { return CheckJob(request, job); },
           .error_bytes = ErrorBytes,
           .wake = [this] { runner_ticker_.Wake(); },
           .ended = [this] { waiter_ticker_.Wake(); }}),
      environment_{.calls = environment.calls,
                   .handler = handler_,
                   .waiters = waiters_,
                   .started = [this] { runner_ticker_.Wake(); },
                   .cancelled =
                       [this] {
                         runner_.BeatSoon();
                         waiter_ticker_.Wake();
                       },
                   .waits = [this] { waiter_ticker_.Wake(); },
                   .max_job_bytes = options.max_job_bytes},
      job_service_(MakeJobService(environment_)),
      operations_service_(MakeOperationsService(environment_)) {
  runner_ticker_.Start([this] { return runner_.Tick(); });
  waiter_ticker_.Start([this] { return waiters_.Tick(); });
}

OperationBackEnd::~OperationBackEnd() {
  Leave();
  // The last job may not have come back from its runner yet.
  jobs_.Drain();
  runner_ticker_.Stop();
  waiter_ticker_.Stop();
}

void OperationBackEnd::Leave() {
  waiters_.Leave();
  waiter_ticker_.Wake();
  runner_.Leave();
  runner_.WaitUntilLeft();
}

}  // namespace stepcast::server
