// A comparison of the simulation with simpler models of training.
//
// Source: the comparison of ICPE 2020, section 4.4.
// Threads: pure functions of their arguments; any number at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/compare/coarse_models.h"
#include "core/compare/synchronous_models.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/model/simulation_options.h"
#include "core/predict/throughput.h"

namespace stepcast {

// The first three are of parameter servers, the next three of collectives, kCoarseTensors of both,
// and the last three of pipelines.
enum class ComparedModel : uint8_t {
  kQueueing,
  kCynthia,
  kCynthiaHalved,
  kCoarseTensors,
  kPollux,
  kNoOverlap,
  kPaleo,
  kBubbleFormula,
  kLinearScaling,
  kSimai,
};

struct ComparedPrediction {
  ComparedModel model = ComparedModel::kQueueing;
  double examples_per_second = 0;  // here and below 0 where the model says nothing
  double steps_per_second = 0;
  double relative_difference = 0;  // to the simulation
  bool within_interval = false;    // of the simulation, ends included
  std::string unavailable_reason;  // empty where the model says something
};

struct ModelComparison {
  Prediction prediction;                   // the simulation's
  std::vector<ComparedPrediction> rivals;  // one a model of such jobs, in the enum's order
};

// The inputs of models of collectives: of one worker's step, and fitted to all numbers
// of workers that were asked for.
struct CollectiveInputs {
  double computation_seconds = 0;
  int64_t bytes = 0;  // of a step's collectives on each worker
  PolluxFormula pollux;
};

struct ComparisonAnswer {
  std::vector<ModelComparison> comparisons;           // in the order asked for
  CoarseProfile inputs;                               // zeros, of collectives
  std::optional<CollectiveInputs> collective_inputs;  // none, of parameter servers and pipelines
  std::optional<PipelineInputs> pipeline_inputs;      // of pipelines only
  SimulationStatistics simulation;
};

// A comparison as it is asked for, unchecked. No counts: those of 1 to 8 with which workers can
// meet.
struct ComparisonDraft {
  std::vector<int32_t> worker_counts;
  ScenarioDraft scenario;  // everything but the number of workers
  SimulationOptionsDraft options;
};

// A checked request.
struct ComparisonQuery {
  ThroughputQuery throughput;  // one scenario a count
  SimulationOptions options;
};

// Fails as ResolveThroughput does; what fixes the number of workers in the scenario is a fault,
// too.
absl::StatusOr<ComparisonQuery> ResolveComparison(const Profile& profile,
                                                  const ComparisonDraft& draft);

// REQUIRES: the query was resolved for this profile.
// The queueing model and Cynthia are of asynchronous training, the former of one server: elsewhere
// they say why they say nothing. Models of collectives and of pipelines are in
// core/compare/synchronous_models.h; the one without overlap is computation and then all
// collectives, as the scenario has them, and linear scaling is that of the simulated one replica.
// Cost: as PredictThroughput, and the recorded steps once
// for the phases and once for every count. Failure: as PredictThroughput.
absl::StatusOr<ComparisonAnswer> CompareModels(const Profile& profile, const ComparisonQuery& query,
                                               StopCheck stop, const Executor& executor = InOrder(),
                                               const KnownRuns& known = {});

}  // namespace stepcast
