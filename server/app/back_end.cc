#include "server/app/back_end.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"

#include "core/base/version.h"
#include "core/predict/throughput.h"
#include "server/convert/operation_convert.h"
#include "server/rpc/operations_rpc.h"
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

namespace {

// Without a directory of its own the server has the system's.
std::string TemporaryDirectory() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::temp_directory_path(error);
  return error ? "/tmp" : path.string();
}

// The size of the cache of profiles as they were read, half of that of all kept profiles: what is
// in memory already need not be kept there twice.
size_t ReadCacheBytes(const ServerOptions& options) {
  const auto all = static_cast<size_t>(options.max_profile_cache_bytes);
  return options.store == StoreKind::kMemory ? 0 : all / 2;
}

// The rest, of profiles as they are computed with.
size_t DecodedCacheBytes(const ServerOptions& options) {
  return static_cast<size_t>(options.max_profile_cache_bytes) - ReadCacheBytes(options);
}

const char* NameOf(StoreKind store) {
  switch (store) {
    case StoreKind::kSqlite:
      return "sqlite";
    case StoreKind::kPostgres:
      return "postgres";
    case StoreKind::kMemory:
      break;
  }
  return "memory";
}

ServerDescription Describe(const ServerOptions& options, const std::string& replica,
                           const Clock& clock) {
  return {.version = ProgramVersion(),
          .engine_version = kEngineVersion,
          .replica = replica,
          .start_time_ns = clock.WallNs(),
          .store = NameOf(options.store)};
}

// The contract's levels are the log's, one later.
WireLogLevel SetLevel(Log& log, WireLogLevel level) {
  const LogLevel before = log.SetLevel(static_cast<LogLevel>(static_cast<int>(level) - 1));
  log.Warning("log level changed", {{"level", absl::StrCat(static_cast<int>(level))}});
  return static_cast<WireLogLevel>(static_cast<int>(before) + 1);
}

}  // namespace

BackEnd::BackEnd(const ServerOptions& options, const Environment& environment)
    : observed_(*environment.stores.profiles, environment.metrics.store, environment.clock),
      store_(observed_, ReadCacheBytes(options), &environment.metrics.profile_cache),
      simulation_observer_(environment.metrics.simulation_jobs, options.simulation_observer),
      store_jobs_({.threads = options.store_threads,
                   .queue_max = static_cast<size_t>(options.store_queue_max),
                   .queue_max_name = "store_queue_max",
                   .observer = &environment.metrics.store_jobs,
                   .clock = &environment.clock}),
      simulation_jobs_({.threads = options.threads,
                        .queue_max = static_cast<size_t>(options.queue_max),
                        .queue_seconds_max = options.queue_max_seconds,
                        .helpers = options.threads - 1,
                        .nice = kSimulationNice,
                        .observer = &simulation_observer_,
                        .clock = &environment.clock}),
      executor_(simulation_jobs_),
      profiles_(store_, options.profile_limits),
      runs_(static_cast<size_t>(options.max_run_cache_bytes), &environment.metrics.run_cache),
      predictions_({.store = store_,
                    .clock = environment.clock,
                    .executor = executor_,
                    .runs = &runs_,
                    .observer = &environment.metrics.simulations,
                    .max_decoded_bytes = DecodedCacheBytes(options),
                    .decoded_cache = &environment.metrics.decoded_cache},
                   options.profile_limits),
      budget_(options.max_pending_bytes),
      call_log_(environment.log),
      environment_{.gate = environment.gate,
                   .costs = costs_,
                   .store_jobs = store_jobs_,
                   .simulation_jobs = simulation_jobs_,
                   .budget = budget_,
                   .clock = environment.clock,
                   .observer = call_log_,
                   .rejections = environment.metrics.rejections,
                   .sharing = environment.metrics.sharing,
                   .answer_cache = &environment.metrics.answer_cache,
                   .request_cache = &environment.metrics.request_cache,
                   .max_message_bytes = options.max_message_bytes,
                   .max_profile_bytes = options.max_profile_bytes,
                   .max_import_bytes = options.max_import_bytes,
                   .spool_directory = options.store == StoreKind::kSqlite ? options.data_dir
                                                                          : TemporaryDirectory(),
                   .max_job_seconds = options.max_job_seconds,
                   .max_answer_cache_bytes = options.max_answer_cache_bytes},
      settings_(options.settings),
      profile_service_(MakeProfileService(profiles_, environment_)),
      prediction_service_(MakePredictionService(predictions_, environment_)),
      admin_service_(MakeAdminService(
          {.describe =
               [this, fixed = Describe(options, environment.replica, environment.clock)] {
                 ServerDescription description = fixed;
                 MutexLock lock(settings_mutex_);
                 description.settings = settings_;
                 return description;
               },
           .set_log_level =
               [this, &log = environment.log](WireLogLevel level) {
                 constexpr const char* kNames[] = {"", "debug", "info", "warning", "error", "off"};
                 const WireLogLevel before = SetLevel(log, level);
                 MutexLock lock(settings_mutex_);
                 settings_["log-level"] = kNames[static_cast<int>(level)];
                 return before;
               },
           .long_running = [this] { return operations_.List(); }},
          environment_)),
      operations_(options.operations, {.replica = environment.replica,
                                       .calls = environment_,
                                       .predictions = predictions_,
                                       .store = *environment.stores.operations,
                                       .shards = environment.stores.shards.get(),
                                       .profiles = store_,
                                       .metrics = environment.metrics.operations}) {}

void BackEnd::SetLimits(const ServerOptions& options) {
  simulation_jobs_.SetLimits(static_cast<size_t>(options.queue_max), options.queue_max_seconds);
  store_jobs_.SetLimits(static_cast<size_t>(options.store_queue_max), 0);
  budget_.SetMax(options.max_pending_bytes);
  store_.SetLimits(options.store_limits);
  MutexLock lock(settings_mutex_);
  settings_ = options.settings;
}

void BackEnd::Drain() {
  operations_.Leave();
  // Jobs of the first pool may submit to the second.
  store_jobs_.Drain();
  simulation_jobs_.Drain();
}

}  // namespace stepcast::server
