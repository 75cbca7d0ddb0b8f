// The diagnosis of a job: why a step takes as long as it does, who is waited for, and what each of
// some changes would bring.
//
// The critical path is that of a few simulated steps (critical_path.h); each change is simulated as
// a prediction is, with the same random choices, so that its gain is known better than either
// throughput. Threads: pure functions of their arguments; any number at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/advise/communication_tuning.h"
#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/model/simulation_options.h"
#include "core/predict/throughput.h"
#include "core/predict/what_if.h"
#include "core/replay/critical_path.h"
#include "core/replay/job_recording_report.h"
#include "core/replay/overlap_slowdown.h"

namespace stepcast {

// A request as it is asked for, unchecked.
struct DiagnosisDraft {
  ScenarioDraft scenario;
  SimulationOptionsDraft options;
};

// A checked request.
struct DiagnosisQuery {
  Scenario scenario;
  SimulationOptions options;
};

// Without a number of workers, or groups of them, it is of one, or of as many as were recorded.
// Fails as ResolveThroughput does of one scenario, paths relative to the request
// (`scenario.workers`).
absl::StatusOr<DiagnosisQuery> ResolveDiagnosis(const Profile& profile,
                                                const DiagnosisDraft& draft);

struct WhatIfAnswer {
  WhatIf change = WhatIf::kNoStragglers;
  Prediction prediction;
  // Ratio of steps per second to what they are without the change, run by run with the same random
  // choices (which another number of workers does not have); 1: no difference.
  double ratio = 1;
  Interval ratio_interval;
  // Setting of kBestBuckets and kBestTransferOrder, as the user would write it; empty: nothing is
  // to be set for these buckets.
  std::string setting;
  std::vector<TunedGroup> groups;  // of kBestBuckets
};

struct WhatIfLeftOut {
  WhatIf change = WhatIf::kNoStragglers;
  std::string reason;
};

// Seconds of a step by PathKind.
using SecondsByKind = std::array<double, kPathKinds>;

struct WorkerDiagnosis {
  SecondsByKind own{};            // add up to its own step: see WorkerShare
  double on_path_seconds = 0;     // of a step of the critical path
  double waited_for_seconds = 0;  // of that, while all others waited for it
};

// An operation of a step, on the critical path.
struct PathOperation {
  std::vector<std::string> operations;  // the profile's; several: one collective carries them
  PathKind kind = PathKind::kComputation;
  double seconds = 0;  // of a step; on all workers together
};

// The critical path of some steps, and each worker's share of it.
struct PathDiagnosis {
  int32_t steps = 0;        // that it goes through, without warm-up
  double seconds = 0;       // of a step
  SecondsByKind by_kind{};  // adds up to `seconds`
  std::vector<WorkerDiagnosis> workers;
  int32_t straggler = -1;                 // as CriticalPath
  std::vector<PathOperation> operations;  // the longest first, at most kMaxPathOperations
};

// The recording of several workers that a profile holds.
struct RecordingDiagnosis {
  JobRecordingReport report;
  PathDiagnosis path;  // of the replay
  // Slow-down in the replay; none: too little ran both alone and beside collectives.
  std::optional<OverlapSlowdown> overlap_slowdown;
  // Slow-down as recorded; none: see FindCollectiveSlowdown.
  std::optional<CollectiveSlowdown> collective_slowdown;
};

// A part of a pipeline's step, and the change of those tried that gains most by it.
struct PipelineFinding {
  PipelineBottleneck part = PipelineBottleneck::kComputation;
  double seconds = 0;   // of a step; the parts add up to it
  int32_t device = -1;  // of kImbalance the slowest; -1: of all
  std::optional<WhatIf> change;
  double ratio = 1;  // of the change
  std::string text;
};

struct Diagnosis {
  Prediction prediction;
  PathDiagnosis path;                           // of pipelines no path is followed
  std::vector<PipelineFinding> findings;        // of pipelines, the longest first
  std::optional<RecordingDiagnosis> recording;  // none: the profile is of one worker
  std::vector<WhatIfAnswer> what_ifs;           // the greatest ratio first
  std::vector<WhatIfLeftOut> left_out;          // what cannot differ, or cannot be asked
  SimulationStatistics simulation;
};

inline constexpr size_t kMaxPathOperations = 20;
// Steps of the path, and before them: fewer, but one, where the job is so large that they would be
// more than kMaxFollowedOperations.
inline constexpr int32_t kPathSteps = 20;
inline constexpr int32_t kPathWarmup = 5;

// The recorded path of a recording of several workers, which the profile holds, is that of its
// replay, in the recorded order of steps. The paths are followed first, and buckets and orders are
// searched last: a time budget that is spent later leaves fewer runs, as of a prediction, and
// leaves out what was not searched. REQUIRES: the query was resolved for this profile. Failure: as
// PredictThroughput, Execute, ReportOnRecording and OptimizeCommunication.
absl::StatusOr<Diagnosis> DiagnoseJob(const Profile& profile, const DiagnosisQuery& query,
                                      StopCheck stop, const Executor& executor = InOrder(),
                                      const KnownRuns& known = {});

// The diagnosis of a job whose replicas are pipelines (pipeline_diagnosis.cc).
//
// Method: as of other jobs each change is simulated with the same random choices. Some change the
// scenario, others what a recording says of stages, and so bound what is to be had of a part of the
// step: with equal stages, or with transfers or reductions that are free, no job is faster.

// Diagnoses as DiagnoseJob does. REQUIRES: the scenario has a pipeline. A time budget that is spent
// once the job as it is was simulated leaves out the changes that are left.
absl::StatusOr<Diagnosis> DiagnosePipeline(const Profile& profile, const DiagnosisQuery& query,
                                           StopCheck stop, const Executor& executor,
                                           const KnownRuns& known);

}  // namespace stepcast
