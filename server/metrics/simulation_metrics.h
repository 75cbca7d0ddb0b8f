// Metrics of the simulations behind the predictions.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include "server/handlers/simulation_observer.h"

namespace stepcast::server {

class SimulationMetrics final : public SimulationObserver {
 public:
  // The registry must outlive it.
  explicit SimulationMetrics(prometheus::Registry& registry);

  void OnSimulation(std::string_view method, absl::StatusCode code, double seconds,
                    int64_t simulated_operations) override;
  void OnUnsteady(std::string_view method, int64_t predictions) override;

 private:
  prometheus::Family<prometheus::Counter>& predictions_;
  prometheus::Family<prometheus::Histogram>& seconds_;
  prometheus::Family<prometheus::Counter>& unsteady_;
  prometheus::Counter& operations_;
};

}  // namespace stepcast::server
