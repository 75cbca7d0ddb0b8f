#include "core/compare/comparison.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/compare/coarse_models.h"
#include "core/compare/synchronous_models.h"
#include "core/model/all_reduce.h"
#include "core/predict/request_faults.h"

namespace stepcast {

namespace {

constexpr int32_t kDefaultCounts = 8;

absl::StatusOr<ComparedPrediction> CoarseRival(const absl::StatusOr<CoarseTensorsAnswer>& answer,
                                               SimulationStatistics& statistics) {
  ComparedPrediction rival{.model = ComparedModel::kCoarseTensors};
  if (absl::IsOutOfRange(answer.status())) {
    rival.unavailable_reason =
        "a worker's share of the bandwidth makes a step longer than can be simulated";
    return rival;
  }
  if (!answer.ok()) return answer.status();
  rival.steps_per_second = answer->steps_per_second;
  statistics.Add(answer->simulation);
  return rival;
}

// Fills in what follows from steps_per_second, or why there is nothing.
void Hold(const Profile& profile, const Prediction& ours, ComparedPrediction& rival) {
  if (rival.unavailable_reason.empty() && !std::isfinite(rival.steps_per_second)) {
    rival.unavailable_reason = "a step takes no time";
    rival.steps_per_second = 0;
  }
  if (!rival.unavailable_reason.empty()) return;
  rival.examples_per_second =
      rival.steps_per_second * static_cast<double>(ours.scenario.ExamplesPerStep(profile));
  rival.relative_difference =
      (rival.examples_per_second - ours.examples_per_second) / ours.examples_per_second;
  rival.within_interval = rival.examples_per_second >= ours.confidence_interval.lower &&
                          rival.examples_per_second <= ours.confidence_interval.upper;
}

// The models of one scenario, whose number of workers varies.
class ComparedModels {
 public:
  ComparedModels(const Profile& profile, const Scenario& one_worker, CoarseProfile inputs,
                 int32_t max_workers)
      : profile_(profile), scenario_(one_worker), inputs_(std::move(inputs)) {
    if (inputs_.phases.Sum() > 0)
      queueing_ = ClosedNetworkStepsPerSecond(inputs_.phases, max_workers);
  }

  absl::StatusOr<ModelComparison> CompareWith(Prediction prediction,
                                              SimulationStatistics& statistics,
                                              StopCheck stop) const {
    const int32_t workers = prediction.scenario.workers;
    ModelComparison comparison{.prediction = std::move(prediction)};
    for (const ComparedModel model :
         {ComparedModel::kQueueing, ComparedModel::kCynthia, ComparedModel::kCynthiaHalved}) {
      ComparedPrediction rival{.model = model, .unavailable_reason = WhySilent(model)};
      if (rival.unavailable_reason.empty()) rival.steps_per_second = ByFormula(model, workers);
      comparison.rivals.push_back(std::move(rival));
    }
    absl::StatusOr<ComparedPrediction> coarse = ByCoarseTensors(workers, statistics, stop);
    if (!coarse.ok()) return coarse.status();
    comparison.rivals.push_back(*std::move(coarse));
    for (ComparedPrediction& rival : comparison.rivals) HoldBeside(comparison.prediction, rival);
    return comparison;
  }

 private:
  std::string WhySilent(ComparedModel model) const {
    if (scenario_.is_synchronous()) return "the model is of asynchronous training";
    if (model == ComparedModel::kQueueing && scenario_.servers().servers > 1) {
      return absl::StrCat("the model is of one parameter server, not of ",
                          scenario_.servers().servers);
    }
    if (model == ComparedModel::kQueueing && queueing_.empty()) return "a step takes no time";
    return "";
  }

  double ByFormula(ComparedModel model, int32_t workers) const {
    if (model == ComparedModel::kQueueing) return queueing_[static_cast<size_t>(workers) - 1];
    return CynthiaStepsPerSecond(
        model == ComparedModel::kCynthia ? inputs_.cynthia : inputs_.cynthia.Halved(), workers);
  }

  absl::StatusOr<ComparedPrediction> ByCoarseTensors(int32_t workers,
                                                     SimulationStatistics& statistics,
                                                     StopCheck stop) const {
    return CoarseRival(PredictByCoarseTensors(profile_, scenario_, workers, stop), statistics);
  }

  void HoldBeside(const Prediction& ours, ComparedPrediction& rival) const {
    Hold(profile_, ours, rival);
  }

  const Profile& profile_;
  const Scenario& scenario_;
  const CoarseProfile inputs_;
  std::vector<double> queueing_;  // steps per second, by workers - 1
};

// Numbers of workers that can meet in the way asked for.
std::vector<int32_t> DefaultCounts(const Profile& profile, const ScenarioDraft& scenario) {
  AllReduce job;
  if (!std::holds_alternative<ParameterServersDraft>(scenario.communication)) {
    const auto* given = std::get_if<AllReduceDraft>(&scenario.communication);
    const AllReduceDraft asked =
        WithCluster(given != nullptr ? *given : AllReduceDraft{}, scenario.cluster);
    job.algorithm = asked.algorithm.value_or(job.algorithm);
    int64_t of_node = asked.workers_per_node.value_or(1);
    // A cluster's are devices, of which a replica takes several.
    const bool is_clusters = given == nullptr || !given->workers_per_node.has_value();
    if (scenario.pipeline.has_value() && is_clusters)
      of_node /= std::max<int64_t>(1, scenario.pipeline->stages.value_or(1)) *
                 profile.devices_per_worker();
    job.workers_per_node = static_cast<int32_t>(std::max<int64_t>(1, of_node));
  }
  std::vector<int32_t> counts;
  for (int32_t workers = 1; workers <= kDefaultCounts; ++workers) {
    FaultList faults;
    CheckWorkers("", workers, job, faults);
    if (faults.empty()) counts.push_back(workers);
  }
  return counts;
}

// The simulated points that the formula is fitted to, and compared with.
CollectiveStep StepOf(const Prediction& prediction) {
  return {.workers = prediction.scenario.workers,
          .computation = prediction.collectives->computation_seconds,
          .collectives = prediction.collectives->lone_collective_seconds,
          .simulated = prediction.scenario.workers / prediction.steps_per_second};
}

CollectiveInputs CollectiveInputsOf(const Profile& profile,
                                    const std::vector<Prediction>& predictions) {
  CollectiveInputs inputs;
  std::vector<CollectiveStep> steps;
  steps.reserve(predictions.size());
  for (const Prediction& prediction : predictions) steps.push_back(StepOf(prediction));
  inputs.computation_seconds = steps.front().computation;
  for (const Operation& operation : profile.operations())
    inputs.bytes += IsAcrossWorkers(operation) ? operation.size_bytes : 0;
  inputs.pollux = FitPollux(steps);
  return inputs;
}

absl::StatusOr<ModelComparison> CompareCollectives(const Profile& profile,
                                                   const CollectiveInputs& inputs,
                                                   Prediction prediction,
                                                   SimulationStatistics& statistics,
                                                   StopCheck stop) {
  const CollectiveStep step = StepOf(prediction);
  absl::StatusOr<ComparedPrediction> coarse =
      CoarseRival(PredictByCoarseCollectives(profile, prediction.scenario, stop), statistics);
  if (!coarse.ok()) return coarse.status();
  ModelComparison comparison{.prediction = std::move(prediction), .rivals = {*std::move(coarse)}};
  const auto add = [&](ComparedModel model, double seconds) {
    comparison.rivals.push_back({.model = model, .steps_per_second = step.workers / seconds});
  };
  add(ComparedModel::kPollux, inputs.pollux.StepSeconds(step.computation, step.workers));
  add(ComparedModel::kNoOverlap, step.computation + step.collectives);
  add(ComparedModel::kPaleo,
      PaleoStepSeconds(profile, comparison.prediction.scenario, step.computation));
  for (ComparedPrediction& rival : comparison.rivals) Hold(profile, comparison.prediction, rival);
  return comparison;
}

// All predictions are of one pipeline.
ComparisonAnswer ComparePipelines(const Profile& profile, ThroughputAnswer ours) {
  const Scenario& any = ours.predictions.front().scenario;
  const PipelinePlan plan = PlanPipeline(profile, any);
  const PipelineInputs inputs = PipelineInputsOf(plan, any);
  ComparisonAnswer answer{.pipeline_inputs = inputs, .simulation = ours.simulation};
  for (Prediction& prediction : ours.predictions) {
    const Scenario& scenario = prediction.scenario;
    const double workers = scenario.workers;
    ModelComparison comparison;
    const auto add = [&](ComparedModel model, double steps_per_second) {
      comparison.rivals.push_back({.model = model, .steps_per_second = steps_per_second});
    };
    const std::optional<double> bubble = BubbleFormulaSeconds(inputs, scenario.pipeline->layout);
    add(ComparedModel::kBubbleFormula, workers / bubble.value_or(1));
    if (!bubble.has_value())
      comparison.rivals.back() = {
          .model = ComparedModel::kBubbleFormula,
          .unavailable_reason = "ZERO_BUBBLE_V's bubble depends on which computation is longest"};
    add(ComparedModel::kLinearScaling, workers * prediction.steps_per_second / prediction.speedup);
    add(ComparedModel::kSimai, workers / SimaiStepSeconds(inputs, plan, scenario));
    for (ComparedPrediction& rival : comparison.rivals) Hold(profile, prediction, rival);
    comparison.prediction = std::move(prediction);
    answer.comparisons.push_back(std::move(comparison));
  }
  return answer;
}

}  // namespace

absl::StatusOr<ComparisonQuery> ResolveComparison(const Profile& profile,
                                                  const ComparisonDraft& draft) {
  RequestFaults faults;
  ThroughputDraft throughput{.worker_counts = draft.worker_counts, .options = draft.options};
  throughput.scenario =
      WithVariedWorkers(draft.scenario, "worker_counts say what to compare at", faults);
  if (throughput.worker_counts.empty())
    throughput.worker_counts = DefaultCounts(profile, draft.scenario);
  absl::StatusOr<ThroughputQuery> query = ResolveThroughput(profile, throughput);
  for (const Fault& fault : DetailsOf(query.status()).faults)
    faults.Add(fault.field, fault.description);
  if (absl::Status status = std::move(faults).ToStatus("REQUEST_INVALID"); !status.ok())
    return status;
  if (!query.ok()) return query.status();
  const SimulationOptions options = query->options;
  return ComparisonQuery{.throughput = *std::move(query), .options = options};
}

absl::StatusOr<ComparisonAnswer> CompareModels(const Profile& profile, const ComparisonQuery& query,
                                               StopCheck stop, const Executor& executor,
                                               const KnownRuns& known) {
  absl::StatusOr<ThroughputAnswer> ours =
      PredictThroughput(profile, query.throughput, stop, executor, known);
  if (!ours.ok()) return ours.status();
  if (query.throughput.scenarios.front().pipeline.has_value())
    return ComparePipelines(profile, *std::move(ours));
  if (!query.throughput.scenarios.front().has_servers()) {
    ComparisonAnswer answer{.collective_inputs = CollectiveInputsOf(profile, ours->predictions),
                            .simulation = ours->simulation};
    for (Prediction& prediction : ours->predictions) {
      absl::StatusOr<ModelComparison> comparison = CompareCollectives(
          profile, *answer.collective_inputs, std::move(prediction), answer.simulation, stop);
      if (!comparison.ok()) return comparison.status();
      answer.comparisons.push_back(*std::move(comparison));
    }
    return answer;
  }
  Scenario one_worker = query.throughput.scenarios.front();
  one_worker.workers = 1;
  const absl::StatusOr<CoarseProfile> inputs = MeasureCoarseProfile(profile, one_worker, stop);
  if (!inputs.ok()) return inputs.status();
  int32_t most = 1;
  for (const Scenario& scenario : query.throughput.scenarios)
    most = std::max(most, scenario.workers);
  const ComparedModels rivals(profile, one_worker, *inputs, most);
  ComparisonAnswer answer{.inputs = *inputs, .simulation = ours->simulation};
  answer.simulation.Add(inputs->simulation);
  for (Prediction& prediction : ours->predictions) {
    absl::StatusOr<ModelComparison> comparison =
        rivals.CompareWith(std::move(prediction), answer.simulation, stop);
    if (!comparison.ok()) return comparison.status();
    answer.comparisons.push_back(*std::move(comparison));
  }
  return answer;
}

}  // namespace stepcast
