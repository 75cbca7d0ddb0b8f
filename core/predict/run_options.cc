#include "core/predict/run_options.h"

#include <algorithm>
#include <cstddef>

#include "core/base/random.h"
#include "core/base/time.h"
#include "core/predict/start_comparison.h"

namespace stepcast {

namespace {

constexpr uint64_t kStaggerStream = 3;

// Mean length of the recorded steps.
double MeanRecordedStepNs(const Profile& profile) {
  double sum = 0;
  for (const RecordedStep& step : profile.steps())
    sum += static_cast<double>(*std::max_element(step.end_ns.begin(), step.end_ns.end()));
  return sum / static_cast<double>(profile.steps().size());
}

std::vector<Span> StartOffsets(const Profile& profile, const Scenario& scenario,
                               const SimulationOptions& options, int32_t replication) {
  std::vector<Span> offsets(static_cast<size_t>(scenario.workers));
  for (size_t worker = 0; worker < scenario.start_offsets_ns.size(); ++worker)
    offsets[worker] = Nanoseconds(scenario.start_offsets_ns[worker]);
  if (StartsAtRandom(scenario, options)) {
    const double step_ns = MeanRecordedStepNs(profile);
    for (size_t worker = 0; worker < offsets.size(); ++worker) {
      Random random({options.seed, static_cast<uint64_t>(replication), worker, kStaggerStream});
      offsets[worker] = Nanoseconds(static_cast<int64_t>(random.Unit() * step_ns));
    }
  }
  return offsets;
}

}  // namespace

RunOptions RunOptionsOf(const Profile& profile, const Scenario& scenario,
                        const SimulationOptions& options, int32_t replication) {
  RunOptions run;
  run.steps_per_worker = options.steps_per_worker;
  run.warmup_steps = options.warmup_steps;
  if (options.horizon == Horizon::kFirstSteps) {
    run.steps_per_worker = options.horizon_steps;
    run.warmup_steps = 0;
  } else if (options.horizon == Horizon::kFirstSeconds) {
    run.until = Instant{} + FromSeconds(options.horizon_seconds);
  }
  run.start_offsets = StartOffsets(profile, scenario, options, replication);
  run.seed = options.seed;
  run.replication = static_cast<uint64_t>(replication);
  return run;
}

}  // namespace stepcast
