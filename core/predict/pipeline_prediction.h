// The throughput of a job whose replicas are pipelines.
//
// Meaning: as PredictThroughput's, of replicas that meet in the reductions of their stages. Every
// replica and device draws its own variation in every step (core/model/step_model.h). Replicas that
// are alike are few columns: each stands for several, and takes the draws of the slowest of them.
// Threads: pure functions of their arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/model/simulation_options.h"
#include "core/model/step_model.h"
#include "core/predict/pipeline_job.h"
#include "core/predict/run_memory.h"
#include "core/predict/throughput.h"

namespace stepcast {

// The status of SimulatePipeline, with its reason and what to do.
absl::Status PipelineFailure(const absl::Status& status, const Scenario& scenario);

// Events that a prediction of such a pipeline simulates, about.
double ExpectedEvents(const PipelineLayout& layout, const SimulationOptions& options);

// The failure is of this pipeline alone, not of the time that was allowed: others may do.
inline bool IsOfPipeline(const absl::Status& status) {
  return status.code() == absl::StatusCode::kFailedPrecondition ||
         status.code() == absl::StatusCode::kOutOfRange;
}

class PipelinePredictor {
 public:
  // Both must outlive it.
  PipelinePredictor(const Profile& profile, const SimulationOptions& options);

  struct Answer {
    Prediction prediction;
    int64_t events = 0;
    std::vector<double> runs;  // steps per second of a replica, by their random choices
  };
  // Failure: what `stop` returns, but for a spent time budget once there is a run;
  // FAILED_PRECONDITION, reason PIPELINE_DEADLOCK, where devices wait for each other for ever;
  // OUT_OF_RANGE, reason SIMULATED_TIME_EXHAUSTED, past 21 days of simulated time. REQUIRES: the
  // scenario was resolved for the profile, and has a pipeline.
  // `plan`: PlanPipeline of a scenario with the same pipeline, or a change of it; a memory knows
  // both by the digest. Threads: any number at once.
  absl::StatusOr<Answer> Predict(const Scenario& scenario, const PipelinePlan& plan, StopCheck stop,
                                 const Executor& executor, const KnownRuns& known = {}) const;

  // The job of a prediction's first run. REQUIRES: as Predict.
  PipelineJob FirstRun(const Scenario& scenario, const PipelinePlan& plan) const;

 private:
  const Profile& profile_;
  const SimulationOptions& options_;
  StepModel model_;
};

}  // namespace stepcast
