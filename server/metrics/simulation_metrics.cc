#include "server/metrics/simulation_metrics.h"

#include <string>

#include "server/metrics/code_name.h"
#include "server/metrics/metric_names.h"

namespace stepcast::server {

namespace {

prometheus::Histogram::BucketBoundaries SimulationBuckets() {
  return {0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 600};
}

}  // namespace

SimulationMetrics::SimulationMetrics(prometheus::Registry& registry)
    : predictions_(prometheus::BuildCounter()
                       .Name(metric::kPredictions)
                       .Help("Computations for predictions that ended, by method and status code.")
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
  for (const std::string_view method : kSimulatingMethods) {
    seconds_.Add({{"method", std::string(method)}}, SimulationBuckets());
    predictions_.Add({{"method", std::string(method)}, {"code", "OK"}});
    unsteady_.Add({{"method", std::string(method)}});
  }
}

void SimulationMetrics::OnSimulation(std::string_view method, absl::StatusCode code, double seconds,
                                     int64_t simulated_operations) {
  const std::string code_name(CodeName(static_cast<int>(code)));
  predictions_.Add({{"method", std::string(method)}, {"code", code_name}}).Increment();
  seconds_.Add({{"method", std::string(method)}}, SimulationBuckets()).Observe(seconds);
  operations_.Increment(static_cast<double>(simulated_operations));
}

void SimulationMetrics::OnUnsteady(std::string_view method, int64_t predictions) {
  unsteady_.Add({{"method", std::string(method)}}).Increment(static_cast<double>(predictions));
}

}  // namespace stepcast::server
