#include "core/compare/recorded_run.h"

#include "core/communication/parameter_servers.h"
#include "core/model/simulation_options.h"
#include "core/predict/run_options.h"

namespace stepcast {

absl::StatusOr<RecordedRun> RunRecordedSteps(const Profile& profile, const Scenario& scenario,
                                             const RankedGraph& ranked, TraceSink* trace,
                                             StopCheck stop) {
  const SimulationOptions options{.steps_per_worker = ranked.program->step_count(),
                                  .warmup_steps = 0,
                                  .replications = 1,
                                  .start = Start::kSimultaneous};
  JobGraph job = ranked.JobOf(scenario);
  job.drawing = StepDrawing::kReplay;
  RunOptions run = RunOptionsOf(profile, scenario, options, 0);
  run.keep_step_ends = true;
  if (trace != nullptr) {
    run.trace = trace;
    run.fastest_path = EnginePath::kPlain;  // the others know no chunks
  }
  const absl::StatusOr<RunResult> result = Simulate(job, run, stop);
  if (!result.ok()) return result.status();
  return RecordedRun{.length = result->step_ends.front().back() - Instant{},
                     .simulation = {.simulated_operations = result->simulated_operations,
                                    .engine_path = NameOf(result->path)}};
}

}  // namespace stepcast
