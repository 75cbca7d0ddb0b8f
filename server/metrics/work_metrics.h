// Metrics of the work behind the calls: job pools, long-running operations, simulations and shared
// answers.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "server/handlers/engine_run.h"
#include "server/jobs/job_pool.h"
#include "server/operations/operation_runner.h"
#include "server/store/operation_store.h"

namespace stepcast::server {

// Metrics of one job pool, told apart from others by the label `pool`.
class JobMetrics final : public JobObserver {
 public:
  // The registry must outlive it.
  JobMetrics(prometheus::Registry& registry, const std::string& pool);

  void OnQueued(size_t queue_length) override;
  void OnRefused() override;
  void OnDropped() override;
  void OnStarted(size_t queue_length, double wait_seconds) override;
  void OnDone(double run_seconds) override;

 private:
  prometheus::Gauge& queue_length_;
  prometheus::Gauge& running_;
  prometheus::Counter& refused_;
  prometheus::Counter& dropped_;
  prometheus::Histogram& wait_seconds_;
  prometheus::Histogram& run_seconds_;
};

// Metrics of long-running operations: how many there are in which state, how long the first waits,
// and what becomes of this replica's attempts.
class OperationMetrics final : public OperationObserver {
 public:
  // The registry must outlive it.
  explicit OperationMetrics(prometheus::Registry& registry);

  void OnAttempt() override;
  void OnAttemptEnd(std::string_view outcome) override;

  // Asks the store, which all replicas share; keeps the old numbers where it fails. To be called
  // before metrics are read. Null `shards`: no other replica is on the store.
  void Refresh(OperationStore& store, ShardStore* shards);

 private:
  prometheus::Family<prometheus::Gauge>& operations_;
  prometheus::Gauge& queue_age_;
  prometheus::Family<prometheus::Gauge>& shards_;
  prometheus::Counter& attempts_;
  prometheus::Family<prometheus::Counter>& attempts_ended_;
};

// Metrics of the simulations behind the predictions.
class SimulationMetrics final : public SimulationObserver {
 public:
  // The registry must outlive it.
  SimulationMetrics(prometheus::Registry& registry, const std::vector<SimulatingMethod>& methods);

  void OnSimulation(const SimulatedWork& work, absl::StatusCode code, double seconds,
                    int64_t simulated_operations) override;
  void OnUnsteady(const SimulatedWork& work, int64_t predictions) override;

 private:
  prometheus::Family<prometheus::Counter>& predictions_;
  prometheus::Family<prometheus::Histogram>& seconds_;
  prometheus::Family<prometheus::Counter>& unsteady_;
  prometheus::Counter& operations_;
};

// Metrics of answers that were computed for another call.
//
// Told of one on gRPC's own thread, as all there is to do for a known answer: so counters of
// methods that simulate are looked up by name alone, where a family would build and hash all their
// labels.
class SharingMetrics final : public SharingObserver {
 public:
  // The registry must outlive it, and the names of methods, too.
  SharingMetrics(prometheus::Registry& registry, const std::vector<SimulatingMethod>& methods);

  void OnShared(std::string_view method, SharedFrom from) override;

 private:
  // By SharedFrom.
  using Counters = std::array<prometheus::Counter*, 2>;

  Counters Make(std::string_view method);

  prometheus::Family<prometheus::Counter>& answers_;
  std::map<std::string_view, Counters> known_;  // by method; immutable once made
};

}  // namespace stepcast::server
