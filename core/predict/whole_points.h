// Points of a PointSet that are not made of runs of one graph, and so are answered as a whole: of
// pipelines, and of a batch that workers divide, where each number of workers has its own profile.
//
// Threads: none.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/model/simulation_options.h"
#include "core/predict/pipeline_prediction.h"
#include "core/predict/run_memory.h"
#include "core/predict/shared_batch.h"
#include "core/predict/throughput.h"

namespace stepcast {

// The same job with one worker: what speed-up is measured against.
Scenario OneWorkerOf(Scenario scenario);

class WholePoints {
 public:
  // Null `shared`: no batch is. REQUIRES: all that is given outlives this.
  WholePoints(const Profile& profile, const SimulationOptions& options, const KnownRuns& known,
              const SharedBatch* shared)
      : profile_(profile), options_(options), known_(known), shared_(shared) {}

  // True if the scenario is answered here.
  bool Takes(const Scenario& scenario) const {
    return scenario.pipeline.has_value() || shared_ != nullptr;
  }
  // Its index. REQUIRES: Takes(scenario).
  size_t FindOrAppend(const Scenario& scenario);
  // Predicts what has no prediction yet. Failure: as PredictThroughput.
  absl::Status RunAll(StopCheck stop, const Executor& executor);
  const std::optional<Prediction>& prediction(size_t index) const {
    return points_[index].prediction;
  }
  const SimulationStatistics& statistics() const { return statistics_; }

 private:
  struct Point {
    Scenario scenario;
    std::optional<Prediction> prediction;
  };

  absl::Status Run(size_t index, StopCheck stop, const Executor& executor);
  absl::StatusOr<Prediction> PredictPipeline(const Scenario& scenario, StopCheck stop,
                                             const Executor& executor);
  absl::StatusOr<Prediction> PredictShare(const Scenario& scenario, StopCheck stop,
                                          const Executor& executor);
  // Sets the speed-up over one worker with the whole batch, which becomes a point, too.
  absl::Status CompareWithOne(const Scenario& scenario, StopCheck stop, const Executor& executor,
                              Prediction& prediction);

  const Profile& profile_;
  const SimulationOptions& options_;
  const KnownRuns& known_;
  const SharedBatch* const shared_;
  std::deque<Point> points_;
  // Both are made where they are asked for first: they read all recorded steps.
  std::optional<PipelinePredictor> predictor_;
  std::optional<PipelinePlan> plan_;
  std::optional<Pipeline> planned_;  // of what the plan is
  SimulationStatistics statistics_;
};

}  // namespace stepcast
