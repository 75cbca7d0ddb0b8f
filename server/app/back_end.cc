#include "server/app/back_end.h"

#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>

#include "server/rpc/prediction_rpc.h"
#include "server/rpc/profile_rpc.h"

namespace stepcast::server {

namespace {

// Without a directory of its own the server has the system's.
std::string TemporaryDirectory() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::temp_directory_path(error);
  return error ? "/tmp" : path.string();
}

// What is in memory already need not be kept there twice.
size_t ProfileCacheBytes(const ServerOptions& options) {
  return options.store == StoreKind::kMemory ? 0 : static_cast<size_t>(options.max_profile_cache_bytes);
}

}  // namespace

BackEnd::BackEnd(const ServerOptions& options, const Clock& clock, Log& log, ServerMetrics& metrics, CallGate& gate, ProfileStore& store,
                 OperationStore& operations)
    : observed_(store, metrics.store, clock),
      store_(observed_, ProfileCacheBytes(options), &metrics.profile_cache),
      simulation_observer_(metrics.simulation_jobs, options.simulation_observer),
      store_jobs_({.threads = options.store_threads,
                   .queue_max = static_cast<size_t>(options.store_queue_max),
                   .observer = &metrics.store_jobs,
                   .clock = &clock}),
      simulation_jobs_({.threads = options.threads,
                        .queue_max = static_cast<size_t>(options.queue_max),
                        .helpers = options.threads - 1,
                        .observer = &simulation_observer_,
                        .clock = &clock}),
      executor_(simulation_jobs_),
      profiles_(store_, options.profile_limits),
      runs_(static_cast<size_t>(options.max_run_cache_bytes), &metrics.run_cache),
      predictions_({.store = store_, .clock = clock, .executor = executor_, .runs = &runs_, .observer = &metrics.simulations},
                   options.profile_limits),
      budget_(options.max_pending_bytes),
      failures_(log),
      environment_{.gate = gate,
                   .store_jobs = store_jobs_,
                   .simulation_jobs = simulation_jobs_,
                   .budget = budget_,
                   .clock = clock,
                   .failures = failures_,
                   .sharing = metrics.sharing,
                   .answer_cache = &metrics.answer_cache,
                   .max_message_bytes = options.max_message_bytes,
                   .max_profile_bytes = options.max_profile_bytes,
                   .max_import_bytes = options.max_import_bytes,
                   .spool_directory = options.store == StoreKind::kSqlite ? options.data_dir : TemporaryDirectory(),
                   .max_job_seconds = options.max_job_seconds,
                   .max_answer_cache_bytes = options.max_answer_cache_bytes},
      profile_service_(MakeProfileService(profiles_, environment_)),
      prediction_service_(MakePredictionService(predictions_, environment_)),
      operations_(options.operations, {.calls = environment_, .predictions = predictions_, .store = operations, .metrics = metrics.operations}) {}

void BackEnd::Drain() {
  operations_.Leave();
  // Jobs of the first pool may submit to the second.
  store_jobs_.Drain();
  simulation_jobs_.Drain();
}

}  // namespace stepcast::server
