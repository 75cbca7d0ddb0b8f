#include "tests/bench/engine_run.h"

#include <stdexcept>
#include <utility>

#include "core/base/stop_check.h"
#include "tests/bench/cpu_clock.h"

namespace stepcast::bench {

namespace {

RunResult Run(const JobGraph& job, const RunOptions& options) {
  absl::StatusOr<RunResult> result = Simulate(job, options, NeverStop);
  if (!result.ok()) throw std::runtime_error(result.status().ToString());
  return *std::move(result);
}

}  // namespace

Cost RunEngine(const Job& job, const RunOptions& options,
               std::vector<std::vector<Instant>>* step_ends) {
  return RunEngine(JobGraphOf(job, static_cast<int32_t>(options.start_offsets.size())), options,
                   step_ends);
}

Cost RunEngine(const JobGraph& job, const RunOptions& options,
               std::vector<std::vector<Instant>>* step_ends) {
  const double begin = ThreadCpuNs();
  RunResult result = Run(job, options);
  const Cost cost{.cpu_ns = ThreadCpuNs() - begin, .operations = result.simulated_operations};
  if (step_ends != nullptr) *step_ends = std::move(result.step_ends);
  return cost;
}

std::vector<std::vector<double>> EngineStepEnds(const Job& job, RunOptions options) {
  const auto workers = static_cast<int32_t>(options.start_offsets.size());
  return EngineStepEnds(JobGraphOf(job, workers), std::move(options));
}

std::vector<std::vector<double>> EngineStepEnds(const JobGraph& job, RunOptions options) {
  options.keep_step_ends = true;
  std::vector<std::vector<double>> ends;
  for (const std::vector<Instant>& own : Run(job, options).step_ends) {
    std::vector<double>& seconds = ends.emplace_back();
    for (const Instant end : own) seconds.push_back(ToSeconds(end - Instant{}));
  }
  return ends;
}

}  // namespace stepcast::bench
