#include "core/predict/replications.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "core/base/random.h"
#include "core/base/time.h"
#include "core/communication/all_reduce.h"
#include "core/model/scenario_edits.h"
#include "core/orders/transfer_ranks.h"
#include "core/predict/certainty.h"
#include "core/predict/start_comparison.h"

namespace stepcast {

namespace {

constexpr uint64_t kStaggerStream = 3;

// The time within which workers start at random: a step as it was recorded, and where no length was
// asked for as it is when so many share the servers' links.
double StartWindowNs(const Profile& profile, const Scenario& scenario,
                     const SimulationOptions& options) {
  if (!options.automatic_steps || !scenario.RemembersStart()) return profile.mean_step_ns();
  double down = 0;
  double up = 0;
  for (const Operation& operation : profile.operations()) {
    const auto bytes = static_cast<double>(operation.size_bytes);
    const bool both = operation.resource == Resource::kCollective;
    if (both || operation.resource == Resource::kDownlink) down += bytes;
    if (both || operation.resource == Resource::kUplink) up += bytes;
  }
  const double link_ns = std::max(down, up) / scenario.bandwidth_bytes_per_second * 1e9;
  return std::max(profile.mean_step_ns(), scenario.workers * link_ns / scenario.server_count());
}

std::vector<Span> StartOffsets(const Profile& profile, const Scenario& scenario,
                               const SimulationOptions& options, int32_t replication) {
  std::vector<Span> offsets(static_cast<size_t>(scenario.workers));
  for (size_t worker = 0; worker < scenario.start_offsets_ns.size(); ++worker)
    offsets[worker] = Nanoseconds(scenario.start_offsets_ns[worker]);
  if (StartsAtRandom(scenario, options)) {
    const double window_ns = StartWindowNs(profile, scenario, options);
    for (size_t worker = 0; worker < offsets.size(); ++worker) {
      Random random({options.seed, static_cast<uint64_t>(replication), worker, kStaggerStream});
      offsets[worker] = Nanoseconds(static_cast<int64_t>(random.Unit() * window_ns));
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

namespace {

// Fewer values say too little of their own spread to stop by.
constexpr int32_t kMinReplicationsForPrecision = 3;
// The numbers of runs at which it is decided, where replications were not asked for, whether there
// will be twice as many, so that their number does not depend on how many are made at once.
constexpr int32_t kMilestones[] = {3, 5, 10};
constexpr int32_t kMaxUnasked = 20;
// A half-width of the interval of single runs, as a share of the mean, that is worth more runs.
constexpr double kWideRuns = 0.05;
// A half-width of the interval of the mean, as a share of it, that is worth more runs of workers
// that meet in collectives.
constexpr double kWideMean = 0.005;
// The same beside an interval of what the recording leaves open, as a share of its half-width.
constexpr double kEnoughOfInput = 0.2;
// The same beside the model's measured error, as a share of it.
constexpr double kEnoughOfModel = 0.4;
// The numbers of runs at which it is decided, where no length was asked for, whether they say
// enough.
constexpr int32_t kFewOfALength = 5;
constexpr int32_t kMostOfALength = 10;
// A half-width of the interval of the mean of so many, as a share of it, that is worth more runs of
// the longest.
constexpr double kWideMeanOfLength = 0.125;
// A half-width of the interval of the mean, as a share of it, that is enough where no precision was
// asked for; and how much more is so near to it that as many runs again should do.
constexpr double kPreciseMean = 0.01;
constexpr double kNearlyPrecise = 1.7;
// The begin of a run that a short one repeats: samples; steps of each worker, of all, and of those
// of a run of many; and the part of it that is dropped.
constexpr int32_t kOpeningSamples = 16;
constexpr int32_t kOpeningSteps = 40;
constexpr int32_t kOpeningStepsOfAll = 400;
constexpr double kOpeningShare = 0.5;
constexpr int32_t kOpeningWarmup = 5;
// The share of steps per second to which short runs tell a gain where nothing is random.
constexpr double kErrorOfNothingRandom = 0.002;
// A drift between the halves of the counted time that matters, as a share of the throughput.
constexpr double kDriftThatMatters = 0.02;
// A smaller difference between ways of sharing links, as a share, is not worth a warning.
constexpr double kSharingThatMatters = 0.1;

// Mean of steps per second. The wider of two intervals: how runs differ from each other, and how
// much each one's batches say that it may be off.
MeanInterval MeanOf(const std::vector<RunEstimate>& runs, double level) {
  std::vector<double> values;
  double squares = 0;
  for (const RunEstimate& run : runs) {
    values.push_back(run.steps_per_second);
    squares += run.standard_error * run.standard_error;
  }
  const auto count = static_cast<int32_t>(runs.size());
  MeanInterval interval = StudentT(values, level);
  interval.half_width =
      std::max(interval.half_width,
               StudentTQuantile(count * (kBatches - 1), level) * std::sqrt(squares) / count);
  return interval;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const RankedGraph>> RankedGraph::Make(
    const Profile& profile, const Scenario& scenario, StopCheck stop,
    std::shared_ptr<const Worlds> worlds) {
  absl::StatusOr<JobProgram> job = BuildJobProgram(profile, scenario, stop);
  if (!job.ok()) return job.status();
  RankedGraph graph{.job = *std::move(job),
                    .ranking = nullptr,
                    .worlds = std::move(worlds),
                    .passes = std::nullopt,
                    .memory = MemoryNeedsOf(profile),
                    .listed = {}};
  graph.passes = PassTimesOf(*graph.job.program, profile);
  if (IsRanked(scenario)) {
    absl::StatusOr<Ranking> ranking = RankingOf(profile, scenario, *graph.job.program, stop);
    if (!ranking.ok()) return ranking.status();
    const bool barriers = scenario.is_synchronous();
    for (const World world : {World::kExpected, World::kSlower, World::kWider}) {
      if (graph.worlds == nullptr || (world == World::kWider && !barriers)) break;
      graph.listed.push_back(graph.worlds->List(world, graph.job, *ranking, barriers));
    }
    graph.ranking = std::make_shared<const Ranking>(*std::move(ranking));
  }
  return std::make_shared<const RankedGraph>(std::move(graph));
}

bool RankedGraph::SharedBy(const Scenario& a, const Scenario& b) {
  return HaveSameJobProgram(a, b) && HaveSameRanking(a, b);
}

Replications::Replications(const Profile& profile, const Scenario& scenario,
                           const SimulationOptions& options,
                           std::shared_ptr<const RankedGraph> graph, Purpose purpose)
    : profile_(&profile),
      scenario_(scenario),
      purpose_(purpose),
      options_(options),
      graph_(std::move(graph)),
      job_(graph_->JobOf(scenario)),
      unasked_(options),
      rules_(RunRulesOf(scenario)) {
  if (rules_.lengths > 1 && unasked_.automatic_steps) {
    // A result that is the same in every run has no interval that could say whether it is long
    // enough. Whether a start is forgotten needs none.
    unasked_.automatic_steps = IsRandom() || purpose == Purpose::kOtherStart;
    lengths_ = unasked_.automatic_steps ? rules_.lengths : 1;
  }
  options_ = OptionsOfRuns(unasked_, scenario, length_);
  SkipEqualLengths();
}

// The last of the lengths that are as long as the one at hand.
void Replications::SkipEqualLengths() {
  while (CanLengthen()) {
    const SimulationOptions next = OptionsOfRuns(unasked_, scenario_, length_ + 1);
    if (next.steps_per_worker > options_.steps_per_worker) return;
    ++length_;
  }
}

void Replications::Lengthen() {
  const SimulationOptions longer = OptionsOfRuns(unasked_, scenario_, ++length_);
  options_.steps_per_worker = longer.steps_per_worker;
  options_.warmup_steps = longer.warmup_steps;
  SkipEqualLengths();
  estimates_.clear();
  drift_.clear();
  late_.clear();
  step_times_ = {};
  utilization_.clear();
  joint_times_.clear();
  exposed_ = waiting_ = straggler_fraction_ = 0;
}

bool Replications::IsRandom() const {
  const bool random_order =
      graph_->ranking != nullptr && graph_->ranking->rule == Ranking::Rule::kShuffled;
  const bool varies = graph_->worlds != nullptr && graph_->worlds->model().deviation() > 0;
  return graph_->job.program->step_count() > 1 || varies || random_order || StartMatters();
}

bool Replications::StartMatters() const {
  return StartsAtRandom(scenario_, options_) && scenario_.RemembersStart();
}

void Replications::Allow(const SimulationOptions& options) {
  options_.replications = std::max(options_.replications, options.replications);
  options_.automatic_replications =
      options_.automatic_replications || options.automatic_replications;
}

int32_t Replications::Wanted() const {
  const int32_t most = IsRandom() ? options_.replications : 1;
  if (lengths_ > 1 && (CanLengthen() || options_.automatic_replications)) return WantedOfLength();
  if (options_.automatic_replications && IsRandom()) return WantedUnasked();
  if (options_.relative_precision <= 0 || done() >= most) return most - done();
  if (done() < kMinReplicationsForPrecision)
    return std::min(kMinReplicationsForPrecision, most) - done();
  const MeanInterval interval = StepsPerSecond();
  return interval.half_width <= options_.relative_precision * interval.mean ? 0 : 1;
}

int32_t Replications::WantedUnasked() const {
  for (const int32_t milestone : kMilestones) {
    if (milestone < rules_.first_milestone) continue;
    if (done() < milestone) return milestone - done();
    if (SaysEnough(milestone)) return 0;
  }
  return kMaxUnasked - done();
}

int32_t Replications::WantedOfLength() const {
  if (!options_.automatic_replications && options_.relative_precision <= 0)
    return options_.replications - done();
  if (done() < kFewOfALength) return kFewOfALength - done();
  if (!CanLengthen()) {
    if (done() < kMostOfALength) return SaysEnough(kFewOfALength) ? 0 : kMostOfALength - done();
    return HalfWidth(kMostOfALength) <= kWideMeanOfLength ? 0 : kMaxUnasked - done();
  }
  if (done() >= kMostOfALength) return 0;
  const bool near = HalfWidth(kFewOfALength) <= kNearlyPrecise * Precision();
  return near && !IsPrecise(kFewOfALength) ? kMostOfALength - done() : 0;
}

double Replications::Precision() const {
  if (options_.relative_precision > 0) return options_.relative_precision;
  return std::max(EnoughOfMean(kPreciseMean), kEnoughOfModel * ModelErrorOf().fraction);
}

double Replications::HalfWidth(int32_t runs) const {
  const MeanInterval mean =
      MeanOf({estimates_.begin(), estimates_.begin() + runs}, options_.confidence_level);
  return mean.half_width / mean.mean;
}

bool Replications::IsPrecise(int32_t runs) const {
  if (HalfWidth(runs) > Precision()) return false;
  const MeanInterval drift =
      StudentT({drift_.begin(), drift_.begin() + runs}, options_.confidence_level);
  return std::abs(drift.mean) <= std::max(DriftThatMatters(1), drift.half_width);
}

// Completions at the ends of a half are whole steps: a half of n steps a worker is known to about
// `ends` / n only.
double Replications::DriftThatMatters(double ends) const {
  const double steps_in_half = (options_.steps_per_worker - options_.warmup_steps) / 2.0;
  return std::max(kDriftThatMatters, ends / steps_in_half) * StepsPerSecond().mean;
}

bool Replications::SaysEnough(int32_t milestone) const {
  const std::vector<RunEstimate> runs(estimates_.begin(), estimates_.begin() + milestone);
  const Interval run = SingleRunInterval(runs, options_.confidence_level);
  if (run.upper - run.lower > kWideRuns * (run.upper + run.lower)) return false;
  if (!rules_.needs_precise_mean) return true;
  const MeanInterval mean = MeanOf(runs, options_.confidence_level);
  return mean.half_width <= EnoughOfMean(kWideMean) * mean.mean;
}

// The begin of a run of a steady state that a short run repeats, in steps of each worker: where
// workers begin every step together, or there is one, each is a sample of its own; else what a step
// is worth falls with the number of workers. Of another horizon: all of it.
Replications::Opening Replications::OpeningOf() const {
  if (options_.horizon != Horizon::kSteadyState) return {};
  const int32_t wanted =
      !scenario_.RemembersStart()
          ? kOpeningSamples
          : std::max({kOpeningSteps, kOpeningStepsOfAll / scenario_.workers,
                      static_cast<int32_t>(kOpeningShare * options_.steps_per_worker)});
  const int32_t last = std::min(wanted, options_.steps_per_worker);
  return {.first = last / kOpeningWarmup, .last = last};
}

bool Replications::IsWholeRun(const Opening& opening) const {
  return opening.last == 0 || opening.last == options_.steps_per_worker;
}

// 0 where the marks do not tell it.
double Replications::OpeningRate(const RunResult& result) const {
  const Opening opening = OpeningOf();
  if (opening.last == 0) return result.steps_per_second;
  const std::vector<Instant>& marks = result.completions.marks();
  const int64_t stride = result.completions.stride();
  const int64_t workers = scenario_.workers;
  const int64_t first = std::max<int64_t>(1, workers * opening.first / stride);
  const int64_t last =
      std::min(static_cast<int64_t>(marks.size()), workers * opening.last / stride);
  if (first >= last) return 0;
  const Span length = marks[static_cast<size_t>(last - 1)] - marks[static_cast<size_t>(first - 1)];
  return length.ticks > 0 ? static_cast<double>((last - first) * stride) / ToSeconds(length) : 0;
}

absl::StatusOr<RunSummary> Replications::RunShort(const Scenario& changed, const RankedGraph& graph,
                                                  StopCheck stop) const {
  const absl::StatusOr<RunResult> result = RunOpening(changed, graph, World::kExpected, stop);
  if (!result.ok()) return result.status();
  RunSummary made;
  made.opening_steps_per_second = OpeningRate(*result);
  if (IsWholeRun(OpeningOf()) && CheckMeasured(*result).ok())
    made.estimate = Summary(*result).estimate;
  made.simulated_operations = result->simulated_operations;
  return made;
}

std::optional<double> Replications::GainOf(const RunSummary& short_run) const {
  const double rate = short_run.opening_steps_per_second;
  if (rate > 0 && opening_ > 0) return rate / opening_ - 1;
  return std::nullopt;
}

absl::StatusOr<RunSummary> Replications::RunPaired(const Scenario& changed,
                                                   const RankedGraph& graph, int32_t index,
                                                   StopCheck stop) const {
  RunOptions run = RunOptionsOf(*profile_, changed, options_, index);
  run.scaling = graph.scaling();
  const absl::StatusOr<RunResult> result = Simulate(graph.JobOf(changed), run, stop);
  if (!result.ok()) return result.status();
  if (absl::Status status = CheckMeasured(*result); !status.ok()) return status;
  RunSummary made;
  made.estimate = Summary(*result).estimate;
  made.simulated_operations = result->simulated_operations;
  return made;
}

absl::StatusOr<RunResult> Replications::RunOpening(const Scenario& scenario,
                                                   const RankedGraph& graph, World world,
                                                   StopCheck stop) const {
  RunOptions run = RunOptionsOf(*profile_, scenario, options_, 0);
  run.scaling = graph.scaling(world);
  // The end of warm-up changes nothing of the marks.
  if (const Opening opening = OpeningOf(); !IsWholeRun(opening)) {
    run.steps_per_worker = opening.last;
    run.warmup_steps = opening.first;
  }
  return Simulate(graph.JobOf(scenario, world), run, stop);
}

double Replications::GainError() const {
  return IsRandom() ? rules_.gain_error : kErrorOfNothingRandom;
}

RunSummary Replications::Summary(const RunResult& result) const {
  // Workers that begin every step together have no more to forget than what is dropped anyway, and
  // to choose what to drop by what was seen would favour some means.
  return SummaryOf(result, options_.horizon == Horizon::kSteadyState && options_.automatic_warmup &&
                               scenario_.RemembersStart());
}

absl::StatusOr<RunSummary> Replications::Run(int32_t index, StopCheck stop) const {
  RunOptions run = RunOptionsOf(*profile_, scenario_, options_, index);
  run.scaling = graph_->scaling();
  const absl::StatusOr<RunResult> result = Simulate(job_, run, stop);
  if (!result.ok()) return result.status();
  if (absl::Status status = CheckMeasured(*result); !status.ok()) return status;
  RunSummary summary = Summary(*result);
  summary.opening_steps_per_second = OpeningRate(*result);
  if (index > 0 || purpose_ != Purpose::kPrediction) return summary;
  absl::Status status;
  if (graph_->worlds != nullptr) status.Update(RunWorldsApart(summary, stop));
  if (status.ok() && LinkRateMatters()) {
    status.Update(
        RunChanged(AtHalfTheRate(scenario_), &RunSummary::half_rate_ratio, summary, stop));
  }
  if (status.ok() && SharingMatters()) {
    Scenario first_come = scenario_;
    first_come.servers().link_sharing = FirstCome{};
    status.Update(RunChanged(first_come, &RunSummary::first_come_ratio, summary, stop));
  }
  if (!status.ok()) return status;
  return summary;
}

absl::Status Replications::RunWorldsApart(RunSummary& summary, StopCheck stop) const {
  // The worst where nothing tells: as if computation were all there is.
  summary.sensitivity.to_mean = -1;
  // Workers that do not wait for each other take a step's mean, whatever its deviation.
  const bool waits = scenario_.workers > 1 && scenario_.is_synchronous();
  for (const World world : {World::kSlower, World::kWider}) {
    if (world == World::kWider && !waits) continue;
    const absl::StatusOr<RunResult> result = RunOpening(scenario_, *graph_, world, stop);
    if (!result.ok()) return result.status();
    summary.simulated_operations += result->simulated_operations;
    const double rate = OpeningRate(*result);
    if (rate <= 0 || summary.opening_steps_per_second <= 0) continue;
    const double change = std::log(rate / summary.opening_steps_per_second);
    // Both slow a job down, and neither more than if it did nothing but compute; short runs of
    // chance may say otherwise.
    if (world == World::kSlower) {
      summary.sensitivity.to_mean = std::clamp(change / std::log1p(Worlds::kSlowerBy), -1.0, 0.0);
    } else {
      summary.sensitivity.AnswerToWider(
          change, Worlds::kWiderBy,
          graph_->worlds->MostOfWaiting(scenario_.workers, scenario_.server_count()));
    }
  }
  return absl::OkStatus();
}

absl::Status Replications::RunChanged(const Scenario& changed, double RunSummary::*ratio,
                                      RunSummary& summary, StopCheck stop) const {
  std::shared_ptr<const RankedGraph> graph = graph_;
  // Servers' transfers have their times in the program.
  if (!RankedGraph::SharedBy(changed, scenario_)) {
    absl::StatusOr<std::shared_ptr<const RankedGraph>> made =
        RankedGraph::Make(*profile_, changed, stop, graph_->worlds);
    if (!made.ok()) return made.status();
    graph = *std::move(made);
  }
  const absl::StatusOr<RunResult> result = RunOpening(changed, *graph, World::kExpected, stop);
  if (!result.ok()) return result.status();
  summary.simulated_operations += result->simulated_operations;
  if (summary.opening_steps_per_second > 0)
    summary.*ratio = OpeningRate(*result) / summary.opening_steps_per_second;
  return absl::OkStatus();
}

bool Replications::LinkRateMatters() const {
  if (!scenario_.assumed.Has(Assumed::kLinkRate)) return false;
  const Scenario halved = AtHalfTheRate(scenario_);
  if (!RankedGraph::SharedBy(halved, scenario_)) return true;
  const std::vector<PlannedCollective>& planned = graph_->job.collectives;
  return CollectiveSeconds(planned, halved) != CollectiveSeconds(planned, scenario_) ||
         LoneCollectiveSeconds(planned, halved) != LoneCollectiveSeconds(planned, scenario_);
}

bool Replications::SharingMatters() const {
  return scenario_.workers > 1 && scenario_.server_count() > 1 &&
         scenario_.assumed.Has(Assumed::kLinkSharing) &&
         std::holds_alternative<EqualShares>(scenario_.servers().link_sharing);
}

std::optional<InputError> Replications::OfInput() const {
  if (graph_->worlds == nullptr || done() == 0) return std::nullopt;
  return InputErrorOf(*profile_, graph_->worlds->model(), sensitivity_, options_.confidence_level);
}

double Replications::EnoughOfMean(double asked) const {
  const std::optional<InputError> input = OfInput();
  return input.has_value() ? std::max(asked, kEnoughOfInput * input->half_width) : asked;
}

absl::Status Replications::CheckMeasured(const RunResult& result) const {
  if (result.measured) return absl::OkStatus();
  const auto too_short = [](const std::string& message, std::map<std::string, std::string> asked) {
    return MakeError(absl::StatusCode::kFailedPrecondition, message,
                     {.reason = "SIMULATION_TOO_SHORT", .metadata = std::move(asked)});
  };
  if (options_.horizon == Horizon::kFirstSeconds) {
    const std::string seconds = absl::StrCat(options_.horizon_seconds);
    return too_short(absl::StrCat("no worker completes a step in the first seconds: "
                                  "horizon_seconds ",
                                  seconds, " is too few"),
                     {{"horizon_seconds", seconds}});
  }
  if (options_.horizon == Horizon::kFirstSteps) {
    const std::string steps = absl::StrCat(options_.horizon_steps);
    return too_short(absl::StrCat("a worker ends fewer than two steps once all have started: "
                                  "horizon_steps ",
                                  steps, " is too few"),
                     {{"horizon_steps", steps}});
  }
  const std::string steps = absl::StrCat(options_.steps_per_worker);
  const std::string warmup = absl::StrCat(options_.warmup_steps);
  return too_short(absl::StrCat("a worker does not complete two steps in the counted time: "
                                "steps_per_worker ",
                                steps, " is too few after warmup_steps ", warmup),
                   {{"steps_per_worker", steps}, {"warmup_steps", warmup}});
}

void Replications::Add(const RunSummary& run) {
  if (done() == 0) {
    opening_ = run.opening_steps_per_second;
    completions_ = run.completions;
    sensitivity_ = run.sensitivity;
    half_rate_ratio_ = run.half_rate_ratio;
    first_come_ratio_ = run.first_come_ratio;
  }
  estimates_.push_back(run.estimate);
  // Batches of what does not go on for ever say nothing of it, and where nothing is random they
  // only show the order of completions.
  // Batches of a run as short as can be tell of the ends of steps, not of its mean.
  const bool has_batches = lengths_ == 1 || (!options_.automatic_replications &&
                                             options_.replications < kMinReplicationsForPrecision);
  if (options_.horizon != Horizon::kSteadyState || !IsRandom() || !has_batches)
    estimates_.back().standard_error = 0;
  drift_.push_back(run.drift);
  late_.push_back(run.late_steps_per_second);
  step_times_.Merge(run.step_times);
  exposed_ += run.exposed_communication_fraction;
  waiting_ += run.waiting_fraction;
  joint_times_.resize(run.joint_times.size());
  for (size_t i = 0; i < joint_times_.size(); ++i) {
    joint_times_[i].ready += run.joint_times[i].ready;
    joint_times_[i].begin += run.joint_times[i].begin;
    joint_times_[i].end += run.joint_times[i].end;
    joint_times_[i].count += run.joint_times[i].count;
  }
  straggler_fraction_ = std::max(straggler_fraction_, run.straggler_fraction);
  simulated_operations_ += run.simulated_operations;
  ++made_;
  path_ = run.path;
  AddUtilization(run);
}

void Replications::AddUtilization(const RunSummary& run) {
  utilization_.resize(run.utilization.size(), 0);
  for (size_t lane = 0; lane < utilization_.size(); ++lane)
    utilization_[lane] += run.utilization[lane];
}

// Runs that end where their interval is narrow end sooner where it is so by chance, and then hold
// less than they say: half the error makes up for it.
MeanInterval Replications::StepsPerSecond() const {
  const bool ends_by_itself =
      lengths_ > 1 && (options_.automatic_replications || options_.relative_precision > 0);
  const double level = options_.confidence_level;
  return MeanOf(estimates_, ends_by_itself ? 1 - (1 - level) / 2 : level);
}

double Replications::LateStepsPerSecond() const {
  return std::accumulate(late_.begin(), late_.end(), 0.0) / done();
}

double Replications::EarlyStepsPerSecond() const {
  return LateStepsPerSecond() - std::accumulate(drift_.begin(), drift_.end(), 0.0) / done();
}

std::vector<double> Replications::Runs() const {
  std::vector<double> values;
  for (const RunEstimate& estimate : estimates_) values.push_back(estimate.steps_per_second);
  return values;
}

Prediction Replications::Summarize() const {
  const MeanInterval steps = StepsPerSecond();
  const Interval run = SingleRunInterval(estimates_, options_.confidence_level);
  const double batch = profile_->batch_size();
  Prediction prediction;
  prediction.scenario = scenario_;
  prediction.devices = scenario_.workers * scenario_.DevicesPerWorker(*profile_);
  prediction.steps_per_second = steps.mean;
  prediction.examples_per_second = steps.mean * batch;
  TellCertainty({.simulation = steps.half_width / steps.mean,
                 .input = OfInput().value_or(InputError{}),
                 .model = ModelErrorOf()},
                {.lower = run.lower * batch, .upper = run.upper * batch, .level = run.level},
                prediction);
  prediction.step_time = StepTimeOf(step_times_);
  prediction.exposed_communication_fraction = exposed_ / done();
  prediction.replications = done();
  if (options_.horizon == Horizon::kSteadyState)
    prediction.steps_per_worker = options_.steps_per_worker;
  prediction.completions = completions_;
  prediction.passes = graph_->passes;
  if (prediction.passes.has_value()) *prediction.passes = *prediction.passes / SlowestSpeed();
  prediction.memory = MemoryOf(graph_->memory, scenario_, graph_->job.collectives);
  DescribeResources(prediction);
  if (!scenario_.has_servers()) DescribeCollectives(prediction);
  JudgeConvergence(prediction);
  WarnOfPrecision(options_, StepsPerSecond(), done(), prediction);
  if (LinkRateMatters()) WarnOfLinkRate(prediction);
  if (SharingMatters()) WarnOfLinkSharing(prediction);
  return prediction;
}

void Replications::WarnOfLinkSharing(Prediction& prediction) const {
  if (first_come_ratio_ == 0 || std::abs(first_come_ratio_ - 1) <= kSharingThatMatters) return;
  prediction.warnings.push_back(
      {.reason = Warning::Reason::kLinkSharingMatters,
       .message = absl::StrFormat(
           "nothing says how workers share the links of %d servers: %s examples/s in equal shares, "
           "as predicted, %s first come, first served",
           scenario_.server_count(), NumberText(prediction.examples_per_second),
           NumberText(prediction.examples_per_second * first_come_ratio_))});
}

void Replications::WarnOfLinkRate(Prediction& prediction) const {
  std::string text = NotMeasuredText(scenario_);
  if (half_rate_ratio_ > 0) {
    prediction.at_half_the_rate = prediction.examples_per_second * half_rate_ratio_;
    absl::StrAppend(&text, ": at half of that ", NumberText(*prediction.at_half_the_rate),
                    " examples/s");
  }
  prediction.warnings.push_back(
      {.reason = Warning::Reason::kLinkRateNotMeasured, .message = std::move(text)});
}

ModelError Replications::ModelErrorOf() const {
  if (!options_.model_error_fraction.has_value()) {
    return graph_->worlds == nullptr ? ModelError{} : MeasuredModelError(scenario_);
  }
  return {.fraction = *options_.model_error_fraction, .source = "as asked for"};
}

void Replications::DescribeResources(Prediction& prediction) const {
  const Lanes& lanes = job_.lanes();
  for (LaneIndex lane = 0; lane < lanes.count(); ++lane) {
    // The first joint lane stands for all.
    if (lanes.IsJoint(lane) && lane > lanes.first_joint()) continue;
    if (lanes.IsLink(lane) && !scenario_.has_servers()) continue;  // of joint ones
    const ResourceUtilization used{.resource = ResourceOf(lanes[lane]),
                                   .index = lanes[lane].index,
                                   .fraction = utilization_[static_cast<size_t>(lane)] / done()};
    prediction.utilization.push_back(used);
    if (lane == 0 || used.fraction > prediction.most_used.fraction) prediction.most_used = used;
  }
  prediction.bottleneck = prediction.most_used;
}

void Replications::DescribeCollectives(Prediction& prediction) const {
  const std::vector<PlannedCollective>& planned = graph_->job.collectives;
  CollectiveReport report;
  const double step = prediction.step_time.mean;
  const double exposed = exposed_ / done();
  const double waiting = waiting_ / done();
  report.exposed_seconds = exposed * step;
  report.waiting_seconds = waiting * step;
  report.collective_seconds = CollectiveSeconds(planned, scenario_);
  for (size_t i = 0; i < planned.size(); ++i) {
    CollectiveTiming timing{.operations = {},
                            .kind = planned[i].kind,
                            .is_gradient = planned[i].is_gradient,
                            .size_bytes = planned[i].bytes};
    for (const int32_t member : planned[i].members)
      timing.operations.push_back(profile_->operations()[Index(member)].name);
    const JointTimes& sums = joint_times_[i];
    const double count = std::max<double>(1, static_cast<double>(sums.count));
    timing.ready_seconds = ToSeconds(sums.ready) / count;
    timing.start_seconds = ToSeconds(sums.begin) / count;
    timing.end_seconds = ToSeconds(sums.end) / count;
    report.collectives.push_back(std::move(timing));
  }
  report.computation_seconds = graph_->job.computation_seconds / SlowestSpeed();
  report.lone_collective_seconds = LoneCollectiveSeconds(planned, scenario_);
  report.no_overlap_examples_per_second =
      scenario_.workers * profile_->batch_size() /
      (report.computation_seconds + report.lone_collective_seconds);
  report.links = BindingLinks(planned, scenario_);
  // Until a gain names another.
  if (prediction.most_used.resource == Resource::kCollective)
    report.bottleneck = report.links == LinkPlace::kInsideNodes
                            ? CollectiveBottleneck::kLinkInsideNode
                            : CollectiveBottleneck::kLinkBetweenNodes;
  prediction.collectives = std::move(report);
}

double Replications::SlowestSpeed() const {
  return job_.compute_speeds.empty()
             ? 1
             : *std::min_element(job_.compute_speeds.begin(), job_.compute_speeds.end());
}

void Replications::JudgeConvergence(Prediction& prediction) const {
  const auto warn = [&](Warning::Reason reason, std::string message) {
    prediction.warnings.push_back({.reason = reason, .message = std::move(message)});
  };
  if (options_.horizon != Horizon::kSteadyState) {
    prediction.steady_state = false;
    warn(
        Warning::Reason::kFiniteHorizon,
        options_.horizon == Horizon::kFirstSteps
            ? absl::StrFormat("of the first %d steps of each worker, as asked for: no steady state",
                              options_.horizon_steps)
            : absl::StrFormat("of the first %g s, as asked for: no steady state",
                              options_.horizon_seconds));
    return;
  }
  const MeanInterval drift = StudentT(drift_, options_.confidence_level);
  if (std::abs(drift.mean) > std::max(DriftThatMatters(2), drift.half_width)) {
    prediction.steady_state = false;
    warn(Warning::Reason::kNotSteady,
         absl::StrFormat(
             "not a steady state yet: the second half of the counted steps ran %.1f %% %s than the "
             "first; ask for more steps_per_worker or warmup_steps",
             100 * std::abs(drift.mean) / prediction.steps_per_second,
             drift.mean > 0 ? "faster" : "slower"));
  } else if (!IsRandom()) {
    warn(Warning::Reason::kNothingRandom,
         "nothing is random here (one recorded step, fixed order and start), so the interval has "
         "no width and says nothing of real variation");
  } else if (done() == 1) {
    warn(Warning::Reason::kOneReplication,
         "one replication only: the interval comes from its own batch means, or has no width where "
         "it is too short for those");
  }
}

}  // namespace stepcast
