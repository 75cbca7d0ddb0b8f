#include "core/trace/trace.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/communication/job.h"
#include "core/engine/simulation.h"
#include "core/model/multi_rank_recording.h"
#include "core/predict/pipeline_prediction.h"
#include "core/predict/replications.h"
#include "core/predict/request_faults.h"
#include "core/replay/critical_path.h"
#include "core/replay/execution.h"
#include "core/replay/job_recording_report.h"
#include "core/trace/trace_writers.h"

namespace stepcast {

namespace {

constexpr int32_t kMaxSteps = 10'000'000;  // as of any simulation

// Nothing that is asked for is ignored silently.
void RefuseWhatHasNoEffect(const SimulationOptionsDraft& draft, RequestFaults& faults) {
  const auto refuse = [&](bool is_asked, const char* field, const auto&... why) {
    if (is_asked) faults.Add(absl::StrCat("options.", field), absl::StrCat(why...));
  };
  refuse(draft.warmup_steps.value_or(0) != 0, "warmup_steps", draft.warmup_steps.value_or(0),
         " has no effect: a trace shows every step");
  refuse(draft.replications.value_or(1) != 1, "replications", draft.replications.value_or(1),
         " has no effect: a trace is of one run");
  refuse(draft.relative_precision.value_or(0) != 0, "relative_precision",
         draft.relative_precision.value_or(0), " has no effect: a trace is of one run");
  refuse(draft.confidence_level.has_value(), "confidence_level", draft.confidence_level.value_or(0),
         " has no effect: a trace has no interval");
  refuse(draft.time_budget_seconds.has_value(), "time_budget",
         draft.time_budget_seconds.value_or(0),
         " seconds have no effect: half a trace is not an answer");
  refuse(draft.horizon.value_or(Horizon::kSteadyState) != Horizon::kSteadyState, "horizon",
         "has no effect: a trace shows the first steps");
  refuse(draft.horizon_steps.has_value(), "horizon_steps", draft.horizon_steps.value_or(0),
         " has no effect: steps_per_worker are shown");
  refuse(draft.horizon_seconds.has_value(), "horizon_seconds", draft.horizon_seconds.value_or(0),
         " has no effect: steps_per_worker are shown");
}

// A recording's job is what was recorded.
void RefuseWhatWasRecorded(const Profile& profile, const TraceDraft& draft, RequestFaults& faults) {
  if (profile.recording() == nullptr) {
    faults.Add("recording", "the profile holds no recording of several workers");
    return;
  }
  if (draft.scenario != ScenarioDraft{.recorded_kind_only = draft.scenario.recorded_kind_only})
    faults.Add("scenario", "must not be set with recording, which is shown as it was recorded");
  faults.AddIf(draft.options.seed.has_value(), "options.seed", draft.options.seed,
               " has no effect: a recording has no chance");
  if (draft.options.start)
    faults.Add("options.start", "has no effect: workers begin when they were recorded to");
  const auto steps = static_cast<int32_t>(profile.steps().size());
  faults.AddIf(draft.options.steps_per_worker.value_or(1) > steps, "options.steps_per_worker",
               draft.options.steps_per_worker, " is more than the ", steps, " recorded");
}

SimulationOptions OptionsOf(const SimulationOptionsDraft& draft) {
  SimulationOptions options{.steps_per_worker = draft.steps_per_worker.value_or(kDefaultTraceSteps),
                            .warmup_steps = 0,
                            .replications = 1};
  options.seed = draft.seed.value_or(options.seed);
  // Starts are those of the first steps of any job: together, unless said otherwise.
  options.start = draft.start.value_or(Start::kSimultaneous);
  return options;
}

// The most that the trace can have: lanes that run nothing are counted, too.
int64_t MostEvents(const Profile& profile, const Scenario& scenario, int32_t steps_per_worker) {
  if (scenario.pipeline.has_value()) {
    // Replicas are columns, of each kind of worker a few.
    constexpr int64_t kColumnsOfAKind = 4;
    const auto kinds = static_cast<int64_t>(std::max<size_t>(1, scenario.worker_groups.size()));
    const auto columns =
        static_cast<int32_t>(std::min<int64_t>(scenario.workers, kColumnsOfAKind * kinds));
    return MostPipelineEvents(scenario.pipeline->layout, columns, steps_per_worker) +
           columns * static_cast<int64_t>(profile.operations().size()) * steps_per_worker;
  }
  // Events of large jobs may be more than an int64 holds.
  constexpr double kMost = 9e18;
  const StepBound bound = StepBoundOf(profile, scenario);
  return static_cast<int64_t>(
      std::min(kMost, scenario.workers * (steps_per_worker * bound.chunks + 2 * bound.lanes)));
}

// The run of a job, and its trace while it goes on.
class JobTracer {
 public:
  JobTracer(const Profile& profile, const TraceQuery& query, const JobProgram& program,
            TextSink sink, StopCheck stop)
      : query_(query),
        stop_(stop),
        writer_({.profile = profile,
                 .scenario = query.scenario,
                 .graph = *program.program,
                 .collectives = program.collectives,
                 .steps_per_worker = query.options.steps_per_worker},
                sink) {}

  absl::StatusOr<TraceSummary> Write(const JobGraph& job, RunOptions run) {
    writer_.Begin();
    run.fastest_path = EnginePath::kPlain;  // the others know no chunks
    run.trace = &writer_;
    const auto stop_or_unwanted = [this] {
      return writer_.status().ok() ? stop_() : writer_.status();
    };
    const absl::StatusOr<int64_t> operations = query_.critical_path
                                                   ? RunAndFollow(job, run, stop_or_unwanted)
                                                   : Run(job, run, stop_or_unwanted);
    if (!operations.ok()) return operations.status();
    writer_.End();
    if (!writer_.status().ok()) return writer_.status();
    return TraceSummary{.events = writer_.events(),
                        .simulation = {.simulated_operations = *operations}};
  }

 private:
  // The simulated operations of it.
  static absl::StatusOr<int64_t> Run(const JobGraph& job, const RunOptions& run, StopCheck stop) {
    const absl::StatusOr<RunResult> result = Simulate(job, run, stop);
    if (!result.ok()) return result.status();
    return result->simulated_operations;
  }
  // The same, and the critical path written.
  absl::StatusOr<int64_t> RunAndFollow(const JobGraph& job, const RunOptions& run, StopCheck stop) {
    const absl::StatusOr<Execution> execution = Execute(job, run, stop);
    if (!execution.ok()) return execution.status();
    const absl::StatusOr<CriticalPath> path = FindCriticalPath(*execution, stop);
    if (!path.ok()) return path.status();
    PacedStopCheck pace(stop);
    writer_.WritePath(*execution, *path, pace);
    if (!pace.status().ok()) return pace.status();
    return execution->simulated_operations;
  }

  const TraceQuery& query_;
  const StopCheck stop_;
  PerfettoWriter writer_;
};

absl::StatusOr<TraceSummary> TracePipeline(const Profile& profile, const TraceQuery& query,
                                           TextSink sink, StopCheck stop) {
  const PipelineJob job = PipelinePredictor(profile, query.options)
                              .FirstRun(query.scenario, PlanPipeline(profile, query.scenario));
  PipelineTrace trace(job, sink);
  trace.Begin();
  const auto stop_or_unwanted = [&] { return trace.status().ok() ? stop() : trace.status(); };
  const absl::StatusOr<PipelineRun> run = SimulatePipeline(job, stop_or_unwanted, &trace);
  if (!run.ok()) return PipelineFailure(run.status(), query.scenario);
  trace.End();
  if (!trace.status().ok()) return trace.status();
  return TraceSummary{
      .events = trace.events(),
      .simulation = {.simulated_operations = run->events, .engine_path = "pipeline", .runs = 1}};
}

}  // namespace

absl::StatusOr<TraceQuery> ResolveTrace(const Profile& profile, const TraceDraft& draft,
                                        const TraceLimits& limits) {
  RequestFaults faults;
  SimulationOptions options = OptionsOf(draft.options);
  ScenarioDraft asked = draft.scenario;
  if (draft.recording) {
    RefuseWhatWasRecorded(profile, draft, faults);
    asked = {.workers = profile.recorded_workers()};
    options.steps_per_worker =
        draft.options.steps_per_worker.value_or(static_cast<int32_t>(profile.steps().size()));
  }
  const absl::StatusOr<Scenario> scenario =
      ResolveRunnable(profile, asked, nullptr, {.pipelines = true});
  faults.AddIf(draft.critical_path && asked.pipeline.has_value(), "critical_path",
               "true, and of pipelines no path is followed: arrows show the "
               "transfers that computations waited for");
  faults.AddPart("scenario", scenario.status());
  const int32_t steps = options.steps_per_worker;
  if (steps < 1 || steps > kMaxSteps) {
    faults.Add("options.steps_per_worker", absl::StrCat(steps, " is not from 1 to ", kMaxSteps));
  } else if (scenario.ok()) {
    const int64_t events = MostEvents(profile, *scenario, steps);
    if (events > limits.max_trace_events) {
      faults.Add(
          "options.steps_per_worker",
          absl::StrCat(
              steps, " steps of each of ", scenario->workers, " workers make up to ", events,
              " events, which is above the limit max_trace_events = ", limits.max_trace_events));
    } else if (draft.critical_path && events > limits.max_path_events) {
      faults.Add(
          "critical_path",
          absl::StrCat(steps, " steps of each of ", scenario->workers, " workers make up to ",
                       events, " events, of which a path is followed through at most ",
                       limits.max_path_events));
    }
  }
  faults.AddIf(scenario.ok() && draft.options.start == Start::kStaggered &&
                   !scenario->start_offsets_ns.empty(),
               "scenario.start_offsets_ns", "must be empty with start STAGGERED, which draws them");
  RefuseWhatHasNoEffect(draft.options, faults);
  if (absl::Status status = std::move(faults).ToStatus("REQUEST_INVALID"); !status.ok())
    return status;
  return TraceQuery{.scenario = *scenario,
                    .options = options,
                    .critical_path = draft.critical_path,
                    .recording = draft.recording};
}

absl::StatusOr<TraceSummary> WriteTrace(const Profile& profile, const TraceQuery& query,
                                        TextSink sink, StopCheck stop) {
  if (query.recording) {
    const absl::StatusOr<MultiRankRecording> recording = RecordingOf(profile, stop);
    if (!recording.ok()) return recording.status();
    const absl::StatusOr<RecordedJob> made = AlignedJobOf(*recording, stop);
    if (!made.ok()) return UnderPath("profile", made.status());
    RunOptions run = made->options;
    run.steps_per_worker = query.options.steps_per_worker;
    run.keep_step_ends = false;
    return JobTracer(profile, query, made->program, sink, stop).Write(made->job, run);
  }
  if (query.scenario.pipeline.has_value()) return TracePipeline(profile, query, sink, stop);
  const absl::StatusOr<std::shared_ptr<const RankedGraph>> ranked =
      RankedGraph::Make(profile, query.scenario, stop);
  if (!ranked.ok()) return ranked.status();
  return JobTracer(profile, query, (*ranked)->job, sink, stop)
      .Write((*ranked)->JobOf(query.scenario),
             RunOptionsOf(profile, query.scenario, query.options, 0));
}

}  // namespace stepcast
