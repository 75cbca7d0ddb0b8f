#include "tests/bench/engine_run.h"

#include <stdexcept>
#include <utility>

#include "core/base/stop_check.h"
#include "tests/bench/cpu_clock.h"

namespace stepcast::bench {

namespace {

RunResult Run(const StepGraph& graph, const RunOptions& options) {
  absl::StatusOr<RunResult> result = Simulate(graph, options, NeverStop);
  if (!result.ok()) throw std::runtime_error(result.status().ToString());
  return *std::move(result);
}

}  // namespace

Cost RunEngine(const StepGraph& graph, const RunOptions& options) {
  const double begin = ThreadCpuNs();
  const RunResult result = Run(graph, options);
  return {.cpu_ns = ThreadCpuNs() - begin, .operations = result.simulated_operations};
}

std::vector<std::vector<double>> EngineStepEnds(const StepGraph& graph, RunOptions options) {
  options.keep_step_ends = true;
  std::vector<std::vector<double>> ends;
  for (const std::vector<Instant>& own : Run(graph, options).step_ends) {
    std::vector<double>& seconds = ends.emplace_back();
    for (const Instant end : own) seconds.push_back(ToSeconds(end - Instant{}));
  }
  return ends;
}

}  // namespace stepcast::bench
