#include "server/metrics/work_metrics.h"

#include <iterator>
#include <string>

#include "server/handlers/engine_run.h"
#include "server/metrics/call_metrics.h"
#include "server/metrics/metric_names.h"

namespace stepcast::server {

namespace {

prometheus::Histogram::BucketBoundaries JobBuckets() {
  return {0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 600};
}

}  // namespace

JobMetrics::JobMetrics(prometheus::Registry& registry, const std::string& pool)
    : queue_length_(prometheus::BuildGauge()
                        .Name(metric::kQueueLength)
                        .Help("Jobs that wait.")
                        .Register(registry)
                        .Add({{"pool", pool}})),
      running_(prometheus::BuildGauge()
                   .Name(metric::kJobsRunning)
                   .Help("Jobs that run.")
                   .Register(registry)
                   .Add({{"pool", pool}})),
      refused_(prometheus::BuildCounter()
                   .Name(metric::kJobsRefused)
                   .Help("Jobs refused at once: the queue was full, the deadline out of reach, or "
                         "the server stopping.")
                   .Register(registry)
                   .Add({{"pool", pool}})),
      dropped_(prometheus::BuildCounter()
                   .Name(metric::kJobsDropped)
                   .Help("Jobs taken out of the queue: abandoned by their callers, or displaced by "
                         "a client with fewer.")
                   .Register(registry)
                   .Add({{"pool", pool}})),
      wait_seconds_(prometheus::BuildHistogram()
                        .Name(metric::kQueueWaitSeconds)
                        .Help("Time a job waited before it ran.")
                        .Register(registry)
                        .Add({{"pool", pool}}, JobBuckets())),
      run_seconds_(prometheus::BuildHistogram()
                       .Name(metric::kJobSeconds)
                       .Help("Time a job ran.")
                       .Register(registry)
                       .Add({{"pool", pool}}, JobBuckets())) {}

void JobMetrics::OnQueued(size_t /*queue_length*/) { queue_length_.Increment(); }

void JobMetrics::OnRefused() { refused_.Increment(); }

void JobMetrics::OnDropped() {
  queue_length_.Decrement();
  dropped_.Increment();
}

void JobMetrics::OnStarted(size_t /*queue_length*/, double wait_seconds) {
  queue_length_.Decrement();
  running_.Increment();
  wait_seconds_.Observe(wait_seconds);
}

void JobMetrics::OnDone(double run_seconds) {
  running_.Decrement();
  run_seconds_.Observe(run_seconds);
}

namespace {

// By OperationState.
constexpr const char* kStateNames[kOperationStates] = {"queued", "running",   "succeeded",
                                                       "failed", "cancelled", "exhausted"};
constexpr char kWaiting[] = "waiting";
constexpr char kTaken[] = "taken";

}  // namespace

OperationMetrics::OperationMetrics(prometheus::Registry& registry)
    : operations_(prometheus::BuildGauge()
                      .Name(metric::kOperations)
                      .Help("Operations in the store, which all replicas share, by state.")
                      .Register(registry)),
      queue_age_(
          prometheus::BuildGauge()
              .Name(metric::kOperationQueueAge)
              .Help("How long the operation that waits the longest has waited; 0: none does.")
              .Register(registry)
              .Add({})),
      shards_(prometheus::BuildGauge()
                  .Name(metric::kOperationShards)
                  .Help("Parts of operations that run, which any replica on the store may make: "
                        "nobody has taken those that wait.")
                  .Register(registry)),
      attempts_(prometheus::BuildCounter()
                    .Name(metric::kOperationAttempts)
                    .Help("Operations this replica has begun to compute.")
                    .Register(registry)
                    .Add({})),
      attempts_ended_(prometheus::BuildCounter()
                          .Name(metric::kOperationAttemptsEnded)
                          .Help("What became of those it has begun.")
                          .Register(registry)) {
  for (const char* state : kStateNames) operations_.Add({{"state", state}});
  for (const char* state : {kWaiting, kTaken}) shards_.Add({{"state", state}});
  for (const std::string_view outcome : kAttemptOutcomes)
    attempts_ended_.Add({{"outcome", std::string(outcome)}});
}

void OperationMetrics::OnAttempt() { attempts_.Increment(); }

void OperationMetrics::OnAttemptEnd(std::string_view outcome) {
  attempts_ended_.Add({{"outcome", std::string(outcome)}}).Increment();
}

void OperationMetrics::Refresh(OperationStore& store, ShardStore* shards) {
  if (shards != nullptr) {
    if (const absl::StatusOr<ShardCounts> counts = shards->CountShards(); counts.ok()) {
      shards_.Add({{"state", kWaiting}}).Set(static_cast<double>(counts->waiting));
      shards_.Add({{"state", kTaken}}).Set(static_cast<double>(counts->open - counts->waiting));
    }
  }
  const absl::StatusOr<OperationCounts> counts = store.Count();
  if (!counts.ok()) return;
  for (int state = 0; state < kOperationStates; ++state) {
    operations_.Add({{"state", kStateNames[state]}})
        .Set(static_cast<double>(counts->by_state[state]));
  }
  queue_age_.Set(static_cast<double>(counts->oldest_queued_ns) * 1e-9);
}

namespace {

prometheus::Histogram::BucketBoundaries SimulationBuckets() {
  return {0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 600};
}

// By Communication; as the scenario's fields are named.
constexpr const char* kCommunicationNames[] = {"parameter_servers", "all_reduce", "both",
                                               "pipeline"};
static_assert(std::size(kCommunicationNames) == std::size(kCommunications));

prometheus::Labels LabelsOf(const SimulatedWork& work) {
  return {{"method", std::string(work.method)},
          {"communication", kCommunicationNames[static_cast<size_t>(work.communication)]}};
}

}  // namespace

SimulationMetrics::SimulationMetrics(prometheus::Registry& registry,
                                     const std::vector<SimulatingMethod>& methods)
    : predictions_(prometheus::BuildCounter()
                       .Name(metric::kPredictions)
                       .Help("Computations for predictions that ended, by method, kind of job and "
                             "status code.")
                       .Register(registry)),
      seconds_(prometheus::BuildHistogram()
                   .Name(metric::kSimulationSeconds)
                   .Help("Time in the engine for one call.")
                   .Register(registry)),
      unsteady_(prometheus::BuildCounter()
                    .Name(metric::kUnsteadyPredictions)
                    .Help("Predictions that carry the warning that they have not converged.")
                    .Register(registry)),
      operations_(prometheus::BuildCounter()
                      .Name(metric::kSimulatedOperations)
                      .Help("Operations simulated for calls that were answered.")
                      .Register(registry)
                      .Add({})) {
  for (const SimulatingMethod& method : methods) {
    for (const Communication communication : kCommunications) {
      if ((method.kinds & KindBit(communication)) == 0) continue;
      prometheus::Labels labels = LabelsOf({method.name, communication});
      seconds_.Add(labels, SimulationBuckets());
      unsteady_.Add(labels);
      labels["code"] = "OK";
      predictions_.Add(labels);
    }
  }
}

void SimulationMetrics::OnSimulation(const SimulatedWork& work, absl::StatusCode code,
                                     double seconds, int64_t simulated_operations) {
  prometheus::Labels labels = LabelsOf(work);
  seconds_.Add(labels, SimulationBuckets()).Observe(seconds);
  labels["code"] = std::string(CodeName(static_cast<int>(code)));
  predictions_.Add(labels).Increment();
  operations_.Increment(static_cast<double>(simulated_operations));
}

void SimulationMetrics::OnUnsteady(const SimulatedWork& work, int64_t predictions) {
  unsteady_.Add(LabelsOf(work)).Increment(static_cast<double>(predictions));
}

namespace {

const char* NameOf(SharedFrom from) { return from == SharedFrom::kCache ? "cache" : "flight"; }

}  // namespace

SharingMetrics::SharingMetrics(prometheus::Registry& registry,
                               const std::vector<SimulatingMethod>& methods)
    : answers_(prometheus::BuildCounter()
                   .Name(metric::kSharedAnswers)
                   .Help("Calls that needed no computation of their own: an equal one had been "
                         "computed (cache) or was under way (flight).")
                   .Register(registry)) {
  for (const SimulatingMethod& method : methods) {
    if (method.name != "GenerateTrace") known_.emplace(method.name, Make(method.name));
  }
}

SharingMetrics::Counters SharingMetrics::Make(std::string_view method) {
  Counters counters{};
  for (const SharedFrom from : {SharedFrom::kCache, SharedFrom::kFlight}) {
    counters[static_cast<size_t>(from)] =
        &answers_.Add({{"method", std::string(method)}, {"from", NameOf(from)}});
  }
  return counters;
}

void SharingMetrics::OnShared(std::string_view method, SharedFrom from) {
  const auto known = known_.find(method);
  const Counters counters = known == known_.end() ? Make(method) : known->second;
  counters[static_cast<size_t>(from)]->Increment();
}

}  // namespace stepcast::server
