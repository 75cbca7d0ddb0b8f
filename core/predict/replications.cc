#include "core/predict/replications.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/predict/student_t.h"
#include "core/predict/transfer_ranks.h"

namespace stepcast {

namespace {

constexpr uint64_t kStaggerStream = 3;
// Fewer values say too little of their own spread to stop by.
constexpr int32_t kLeastReplicationsForPrecision = 3;
// A drift between the halves of the counted time that matters, as a share of the throughput.
constexpr double kDriftThatMatters = 0.02;

// Mean length of the recorded steps.
double MeanRecordedStepNs(const Profile& profile) {
  double sum = 0;
  for (const RecordedStep& step : profile.steps()) sum += static_cast<double>(*std::max_element(step.end_ns.begin(), step.end_ns.end()));
  return sum / static_cast<double>(profile.steps().size());
}

}  // namespace

absl::StatusOr<std::shared_ptr<const RankedGraph>> RankedGraph::Make(const Profile& profile, const Scenario& scenario, StopCheck stop) {
  StepGraph graph = StepGraph::Build(profile, scenario);
  absl::StatusOr<std::vector<int32_t>> ranks = TransferRanks(profile, scenario, graph, stop);
  if (!ranks.ok()) return ranks.status();
  return std::make_shared<const RankedGraph>(RankedGraph{.graph = std::move(graph), .ranks = *std::move(ranks)});
}

bool RankedGraph::SharedBy(Scenario a, Scenario b) {
  for (Scenario* scenario : {&a, &b}) {
    scenario->workers = 1;
    scenario->synchronization = Synchronization::kAsynchronous;
    scenario->start_offsets_ns.clear();
    scenario->worker_groups.clear();
  }
  return a == b;
}

Replications::Replications(const Profile& profile, const Scenario& scenario, const SimulationOptions& options,
                           std::shared_ptr<const RankedGraph> graph)
    : profile_(&profile), scenario_(scenario), options_(options), graph_(std::move(graph)) {
  run_.steps_per_worker = options.steps_per_worker;
  run_.warmup_steps = options.warmup_steps;
  run_.synchronization = scenario.synchronization;
  run_.worker_groups = scenario.worker_groups;
  run_.bandwidth_bytes_per_second = scenario.bandwidth_bytes_per_second;
  run_.order = scenario.transfer_order;
  run_.seed = options.seed;
  run_.ranks = graph_->ranks;
}

bool Replications::IsRandom() const {
  return graph_->graph.step_count() > 1 || scenario_.transfer_order == TransferOrder::kRandom || options_.start == Start::kStaggered;
}

bool Replications::Enough() const {
  if (done() > 0 && !IsRandom()) return true;
  if (done() >= options_.replications) return true;
  if (options_.relative_precision <= 0 || done() < kLeastReplicationsForPrecision) return false;
  const MeanInterval interval = StudentT(steps_per_second_, options_.confidence_level);
  return interval.half_width <= options_.relative_precision * interval.mean;
}

std::vector<Span> Replications::StartOffsets() const {
  std::vector<Span> offsets(static_cast<size_t>(scenario_.workers));
  for (size_t worker = 0; worker < scenario_.start_offsets_ns.size(); ++worker) offsets[worker] = Nanoseconds(scenario_.start_offsets_ns[worker]);
  if (options_.start == Start::kStaggered) {
    const double step_ns = MeanRecordedStepNs(*profile_);
    for (size_t worker = 0; worker < offsets.size(); ++worker) {
      Random random({options_.seed, static_cast<uint64_t>(done()), worker, kStaggerStream});
      offsets[worker] = Nanoseconds(static_cast<int64_t>(random.Unit() * step_ns));
    }
  }
  return offsets;
}

absl::Status Replications::Run(StopCheck stop) {
  run_.replication = static_cast<uint64_t>(done());
  run_.start_offsets = StartOffsets();
  const absl::StatusOr<RunResult> result = Simulate(graph_->graph, run_, stop);
  if (!result.ok()) return result.status();
  simulated_operations_ += result->simulated_operations;
  if (!result->measured) {
    const std::string steps = std::to_string(options_.steps_per_worker);
    const std::string warmup = std::to_string(options_.warmup_steps);
    return MakeError(
        absl::StatusCode::kFailedPrecondition,
        "a worker does not complete two steps in the counted time: steps_per_worker " + steps + " is too few after warmup_steps " + warmup,
        {.reason = "SIMULATION_TOO_SHORT", .metadata = {{"steps_per_worker", steps}, {"warmup_steps", warmup}}});
  }
  steps_per_second_.push_back(result->steps_per_second);
  drift_.push_back(result->second_half_steps_per_second - result->first_half_steps_per_second);
  step_times_.Merge(result->step_times);
  exposed_ += result->exposed_communication_fraction;
  straggler_fraction_ = std::max(straggler_fraction_, result->straggler_fraction);
  AddUtilization(*result);
  return absl::OkStatus();
}

void Replications::AddUtilization(const RunResult& result) {
  utilization_.resize(result.utilization.size(), 0);
  for (size_t lane = 0; lane < utilization_.size(); ++lane) utilization_[lane] += result.utilization[lane];
}

double Replications::StepsPerSecond() const { return StudentT(steps_per_second_, options_.confidence_level).mean; }

Prediction Replications::Summarize() const {
  const MeanInterval steps = StudentT(steps_per_second_, options_.confidence_level);
  const double batch = profile_->batch_size();
  Prediction prediction;
  prediction.scenario = scenario_;
  prediction.steps_per_second = steps.mean;
  prediction.examples_per_second = steps.mean * batch;
  prediction.confidence_interval = {.lower = std::max(0.0, steps.mean - steps.half_width) * batch,
                                    .upper = (steps.mean + steps.half_width) * batch,
                                    .level = options_.confidence_level};
  prediction.step_time = {.mean = step_times_.MeanSeconds(),
                          .p50 = step_times_.PercentileSeconds(0.50),
                          .p95 = step_times_.PercentileSeconds(0.95),
                          .p99 = step_times_.PercentileSeconds(0.99)};
  prediction.exposed_communication_fraction = exposed_ / done();
  prediction.replications = done();
  DescribeResources(prediction);
  JudgeConvergence(prediction);
  return prediction;
}

void Replications::DescribeResources(Prediction& prediction) const {
  for (LaneIndex lane = 0; lane < graph_->graph.lanes().count(); ++lane) {
    const ResourceUtilization used{.resource = graph_->graph.lanes().KindOf(lane),
                                   .parameter_server = graph_->graph.lanes().ServerOf(lane),
                                   .fraction = utilization_[static_cast<size_t>(lane)] / done()};
    prediction.utilization.push_back(used);
    if (lane == 0 || used.fraction > prediction.bottleneck.fraction) prediction.bottleneck = used;
  }
}

void Replications::JudgeConvergence(Prediction& prediction) const {
  const MeanInterval drift = StudentT(drift_, options_.confidence_level);
  // Completions at the ends of a half are whole steps: a half of n steps a worker is known to about 1/n only.
  const double steps_in_half = (options_.steps_per_worker - options_.warmup_steps) / 2.0;
  const double matters = std::max(kDriftThatMatters, 2 / steps_in_half) * prediction.steps_per_second;
  if (std::abs(drift.mean) > std::max(matters, drift.half_width)) {
    prediction.steady_state = false;
    prediction.warning = absl::StrFormat(
        "not a steady state yet: the second half of the counted steps ran %.1f %% %s than the first; ask for more steps_per_worker or warmup_steps",
        100 * std::abs(drift.mean) / prediction.steps_per_second, drift.mean > 0 ? "faster" : "slower");
  } else if (!IsRandom()) {
    prediction.warning =
        "nothing is random here (one recorded step, fixed order and start), so the interval has no width and says nothing of real variation";
  } else if (done() == 1) {
    prediction.warning = "one replication only, so the interval has no width";
  }
}

}  // namespace stepcast
