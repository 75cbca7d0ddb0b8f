#include "core/compare/comparison.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/compare/analytic_models.h"
#include "core/compare/coarse_models.h"
#include "core/predict/request_faults.h"

namespace stepcast {

namespace {

constexpr int32_t kDefaultCounts = 8;

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
    ComparedPrediction rival{.model = ComparedModel::kCoarseTensors};
    const absl::StatusOr<CoarseTensorsAnswer> answer =
        PredictByCoarseTensors(profile_, scenario_, workers, stop);
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

  void HoldBeside(const Prediction& ours, ComparedPrediction& rival) const {
    if (rival.unavailable_reason.empty() && !std::isfinite(rival.steps_per_second)) {
      rival.unavailable_reason = "a step takes no time";
      rival.steps_per_second = 0;
    }
    if (!rival.unavailable_reason.empty()) return;
    rival.examples_per_second = rival.steps_per_second * profile_.batch_size();
    rival.relative_difference =
        (rival.examples_per_second - ours.examples_per_second) / ours.examples_per_second;
    rival.within_interval = rival.examples_per_second >= ours.confidence_interval.lower &&
                            rival.examples_per_second <= ours.confidence_interval.upper;
  }

  const Profile& profile_;
  const Scenario& scenario_;
  const CoarseProfile inputs_;
  std::vector<double> queueing_;  // steps per second, by workers - 1
};

}  // namespace

absl::StatusOr<ComparisonQuery> ResolveComparison(const Profile& profile,
                                                  const ComparisonDraft& draft) {
  RequestFaults faults;
  ThroughputDraft throughput{.worker_counts = draft.worker_counts, .options = draft.options};
  throughput.scenario =
      WithVariedWorkers(draft.scenario, "worker_counts say what to compare at", faults);
  if (throughput.worker_counts.empty()) {
    throughput.worker_counts.resize(kDefaultCounts);
    std::iota(throughput.worker_counts.begin(), throughput.worker_counts.end(), 1);
  }
  absl::StatusOr<ThroughputQuery> query = ResolveThroughput(profile, throughput);
  if (query.ok() && !query->scenarios.front().has_servers())
    faults.Add("scenario", "the models compared with are of parameter servers, not of collectives");
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
