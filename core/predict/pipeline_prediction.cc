#include "core/predict/pipeline_prediction.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/base/distributions.h"
#include "core/base/error.h"
#include "core/base/index.h"
#include "core/base/message_text.h"
#include "core/base/random.h"
#include "core/base/step_time_histogram.h"
#include "core/model/scenario_edits.h"
#include "core/pipeline/shares.h"
#include "core/predict/certainty.h"
#include "core/predict/pipeline_job.h"
#include "core/predict/point_set.h"
#include "core/predict/worlds.h"

namespace stepcast {
namespace {

// Runs have so many steps where no length was asked for, the first of warm-up: a device has
// forgotten after one how it began. Fewer where a step is long, so that a run has no more than some
// events; the same of columns.
constexpr int32_t kSteps = 20;
constexpr int32_t kLeastSteps = 6;
constexpr int32_t kWarmupSteps = 3;
constexpr int64_t kEventsOfRun = 40'000;
constexpr int32_t kColumns = 4;
constexpr int64_t kEventsOfStep = 12'000;
// Events of a computation, its transfer included.
constexpr int64_t kEventsOfWork = 4;
// Draws for the replicas of a column and a step; of more, only the slowest device is drawn.
constexpr int32_t kDrawsOfColumn = 4096;
constexpr double kLongestSeconds = 21.0 * 86'400;

// Replicas that are simulated as one.
struct Column {
  double scale = 1;  // of what they compute
  int32_t replicas = 1;
};

// A run that is wanted: of another world, or of another number of replicas.
struct Wanted {
  int32_t replication = 0;
  double slower = 1;
  double wider = 1;
  bool alone = false;      // one replica
  bool half_rate = false;  // of links
  absl::StatusOr<std::shared_ptr<const RunSummary>> run = absl::CancelledError("not begun");
};

class PipelineRuns {
 public:
  PipelineRuns(const Profile& profile, const SimulationOptions& options, const StepModel& model,
               const Scenario& scenario, const PipelinePlan& plan, const KnownRuns& known)
      : profile_(profile),
        options_(options),
        model_(model),
        scenario_(scenario),
        plan_(plan),
        known_(known) {
    is_modelled_ = options.step_variation == StepSource::kModelled;
    is_random_ = is_modelled_ || plan.times.size() > 1;
    columns_ = ColumnsOf(scenario);
    load_ = plan.MicroBatchSeconds(scenario.pipeline->layout);
    ChooseLength();
  }

  absl::Status CheckLength() const;
  PipelineJob FirstRun() const { return JobOfRun({}); }
  absl::StatusOr<PipelinePredictor::Answer> Make(StopCheck stop, const Executor& executor);

 private:
  std::vector<Column> ColumnsOf(const Scenario& scenario) const;
  void ChooseLength();
  int64_t EventsOfColumn() const {
    const PipelineLayout& layout = scenario_.pipeline->layout;
    const int64_t parts = SplitsBackward(layout.schedule) ? 3 : 2;
    return parts * kEventsOfWork * layout.stages() * layout.micro_batches;
  }
  PipelineJob JobOfRun(const Wanted& wanted) const;
  std::vector<double> StepScale(const std::vector<Column>& columns, const Wanted& wanted,
                                int32_t step) const;
  void Draw(const Column& column, double deviation, Random& random,
            std::vector<double>& factors) const;
  std::string KeyOf(const Wanted& wanted) const;
  // Its estimate, step times, completions and events; nothing else.
  absl::StatusOr<RunSummary> Measure(const Wanted& wanted, StopCheck stop) const;
  absl::Status RunAll(std::vector<Wanted>& wanted, StopCheck stop, const Executor& executor);
  bool IsPreciseEnough() const;
  void Summarize(Prediction& prediction) const;
  void Warn(Prediction& prediction) const;
  absl::Status Describe(StopCheck stop, Prediction& prediction);
  MeanInterval StepsPerSecond() const;

  const Profile& profile_;
  const SimulationOptions& options_;
  const StepModel& model_;
  const Scenario& scenario_;
  const PipelinePlan& plan_;
  const KnownRuns& known_;
  bool is_modelled_ = false;
  bool is_random_ = false;
  std::vector<Column> columns_;
  std::vector<double> load_;  // seconds of a micro-batch, by device
  int32_t steps_ = kSteps;
  int32_t warmup_ = kWarmupSteps;
  std::vector<std::shared_ptr<const RunSummary>> runs_;
  double alone_ = 0;      // steps per second of one replica
  double half_rate_ = 0;  // of throughput; 0: not known
  Sensitivity sensitivity_;
  int64_t events_ = 0;
};

std::vector<Column> PipelineRuns::ColumnsOf(const Scenario& scenario) const {
  std::vector<Column> alike;
  for (const WorkerGroup& group : scenario.worker_groups) {
    const double scale = 1 / *group.compute_speed_factor;
    const auto same = std::find_if(alike.begin(), alike.end(),
                                   [&](const Column& column) { return column.scale == scale; });
    if (same == alike.end()) {
      alike.push_back({.scale = scale, .replicas = group.count});
    } else {
      same->replicas += group.count;
    }
  }
  if (alike.empty()) alike.push_back({.scale = 1, .replicas = scenario.workers});
  if (!is_random_) return alike;
  const auto most = std::clamp<int64_t>(kEventsOfStep / EventsOfColumn(), 1, kColumns);
  std::vector<Column> columns;
  for (const Column& column : alike) {
    const auto parts = static_cast<int32_t>(std::min<int64_t>(most, column.replicas));
    for (int32_t part = 0; part < parts; ++part)
      columns.push_back({.scale = column.scale, .replicas = (column.replicas + part) / parts});
  }
  return columns;
}

void PipelineRuns::ChooseLength() {
  if (options_.horizon == Horizon::kFirstSteps) {
    steps_ = options_.horizon_steps;
    warmup_ = 0;
  } else if (!options_.automatic_steps) {
    steps_ = options_.steps_per_worker;
    warmup_ = options_.warmup_steps;
  } else {
    const int64_t of_step = EventsOfColumn() * static_cast<int64_t>(columns_.size());
    steps_ = static_cast<int32_t>(std::clamp<int64_t>(kEventsOfRun / of_step, kLeastSteps, kSteps));
    warmup_ = std::min(kWarmupSteps, steps_ / 2);
  }
}

// Everything of a step one after the other is no shorter than it.
absl::Status PipelineRuns::CheckLength() const {
  const PipelineLayout& layout = scenario_.pipeline->layout;
  const PipelineJob job = JobOf(plan_, scenario_);
  double of_micro_batch = 0;
  for (const double seconds : load_) of_micro_batch += seconds;
  double once = 0;
  for (const int64_t bytes : job.output_bytes)
    of_micro_batch +=
        2 * (ToSeconds(job.latency) + static_cast<double>(bytes) / job.bytes_per_second);
  for (int32_t device = 0; device < layout.devices; ++device) {
    const auto [reduces, gathers] = CollectiveSecondsOf(job, device);
    once += reduces + gathers + ToSeconds(job.tails[Index(device)]);
  }
  double slowest = 1;
  for (const Column& column : columns_) slowest = std::max(slowest, column.scale);
  const double seconds = steps_ * 8 * slowest * (of_micro_batch * layout.micro_batches + once);
  if (seconds < kLongestSeconds) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kOutOfRange,
      absl::StrFormat("%d steps of this pipeline may take %.3g s, more than the 21 days "
                      "that can be simulated",
                      steps_, seconds),
      {.reason = "SIMULATED_TIME_EXHAUSTED"});
}

// The factors of a column's devices, of the replica that is slowest of those it stands for, as its
// step's bound has it: all micro-batches but one on the slowest device, and one on each.
void PipelineRuns::Draw(const Column& column, double deviation, Random& random,
                        std::vector<double>& factors) const {
  const PipelineLayout& layout = scenario_.pipeline->layout;
  const double mean = -deviation * deviation / 2;
  const int32_t tried = std::min(column.replicas, std::max(1, kDrawsOfColumn / layout.devices));
  std::vector<double> best;
  double slowest = -1;
  std::vector<double> drawn(load_.size());
  for (int32_t replica = 0; replica < tried; ++replica) {
    double sum = 0;
    double most = 0;
    for (size_t device = 0; device < load_.size(); ++device) {
      drawn[device] = std::exp(mean + deviation * random.Normal());
      sum += drawn[device] * load_[device];
      most = std::max(most, drawn[device] * load_[device]);
    }
    const double bound = sum + (layout.micro_batches - 1) * most;
    if (bound <= slowest) continue;
    slowest = bound;
    best = drawn;
  }
  if (tried < column.replicas) {
    const double all = static_cast<double>(column.replicas) * layout.devices;
    const double top = std::pow(random.Unit() * (1 - 2e-12) + 1e-12, 1 / all);
    double& device = best[random.Below(best.size())];
    device =
        std::max(device, std::exp(mean + deviation * NormalQuantile(std::min(top, 1 - 1e-12))));
  }
  factors.insert(factors.end(), best.begin(), best.end());
}

std::vector<double> PipelineRuns::StepScale(const std::vector<Column>& columns,
                                            const Wanted& wanted, int32_t step) const {
  std::vector<double> factors;
  for (size_t column = 0; column < columns.size(); ++column) {
    Random random({options_.seed, 0x919e, static_cast<uint64_t>(wanted.replication),
                   static_cast<uint64_t>(step), column});
    Draw(columns[column], wanted.wider * model_.own_deviation, random, factors);
  }
  return factors;
}

PipelineJob PipelineRuns::JobOfRun(const Wanted& wanted) const {
  Scenario scenario = scenario_;
  if (wanted.alone) scenario = LoneWorkersOf(scenario_).front();
  if (wanted.half_rate) {
    scenario.bandwidth_bytes_per_second /= 2;
    scenario.pipeline->bandwidth_bytes_per_second /= 2;
  }
  const std::vector<Column> columns = wanted.alone ? ColumnsOf(scenario) : columns_;
  PipelineJob job = JobOf(plan_, scenario);
  job.replicas = static_cast<int32_t>(columns.size());
  job.steps = steps_;
  job.seed = options_.seed + static_cast<uint64_t>(wanted.replication) * 0x9e3779b97f4a7c15;
  for (const Column& column : columns) job.stands_for.push_back(column.replicas);
  for (const Column& column : columns)
    job.scale.insert(job.scale.end(), Index(job.layout.devices), column.scale * wanted.slower);
  if (!is_modelled_) return job;
  for (int32_t step = 0; step < steps_; ++step)
    job.step_scale.push_back(StepScale(columns, wanted, step));
  // A step's draw is in its factor: recorded steps differ in the shares of their stages only.
  for (size_t recorded = 0; recorded < job.times.size(); ++recorded) {
    const double factor = std::exp(-model_.logarithms[0][recorded]);
    const auto scaled = [&](Span span) {
      return Span{std::llround(static_cast<double>(span.ticks) * factor)};
    };
    for (StageTimes& times : job.times[recorded])
      times = {.forward = scaled(times.forward),
               .backward = scaled(times.backward),
               .backward_weight = scaled(times.backward_weight),
               .last_backward_extra = times.last_backward_extra};
  }
  return job;
}

std::string PipelineRuns::KeyOf(const Wanted& wanted) const {
  if (known_.memory == nullptr) return "";
  const std::string key =
      RunKeyOf(RunKeyPrefix(known_.profile_digest, scenario_, options_), wanted.replication);
  return RunKeyOfKind(
      key, absl::StrCat(wanted.slower, " ", wanted.wider, " ", wanted.alone, wanted.half_rate));
}

absl::StatusOr<RunSummary> PipelineRuns::Measure(const Wanted& wanted, StopCheck stop) const {
  absl::StatusOr<PipelineRun> made = SimulatePipeline(JobOfRun(wanted), stop);
  if (!made.ok()) return PipelineFailure(made.status(), scenario_);
  RunSummary run;
  run.simulated_operations = made->events;
  Instant before = warmup_ == 0 ? Instant{} : made->step_ends[Index(warmup_ - 1)];
  const Span counted = made->step_ends.back() - before;
  for (int32_t step = warmup_; step < steps_; ++step) {
    run.step_times.Add(made->step_ends[Index(step)] - before);
    before = made->step_ends[Index(step)];
  }
  run.estimate.steps_per_second = (steps_ - warmup_) / ToSeconds(counted);
  CompletionSeries completions(scenario_.workers);
  for (const Instant end : made->step_ends) completions.Add(end, scenario_.workers);
  run.completions = Thinned(completions);
  return run;
}

absl::Status PipelineRuns::RunAll(std::vector<Wanted>& wanted, StopCheck stop,
                                  const Executor& executor) {
  known_.ForEach(executor, wanted.size(), [&](size_t i) {
    wanted[i].run = known_.Once(KeyOf(wanted[i]), [&] { return Measure(wanted[i], stop); });
    return wanted[i].run.ok();
  });
  for (const Wanted& one : wanted) {
    if (!one.run.ok()) return one.run.status();
    events_ += (*one.run)->simulated_operations;
  }
  return absl::OkStatus();
}

MeanInterval PipelineRuns::StepsPerSecond() const {
  std::vector<double> values;
  for (const auto& run : runs_) values.push_back(run->estimate.steps_per_second);
  return StudentT(values, options_.confidence_level);
}

bool PipelineRuns::IsPreciseEnough() const {
  if (!is_random_ || static_cast<int32_t>(runs_.size()) >= options_.replications) return true;
  const MeanInterval mean = StepsPerSecond();
  return options_.relative_precision > 0 && runs_.size() > 1 &&
         mean.half_width <= options_.relative_precision * mean.mean;
}

absl::StatusOr<PipelinePredictor::Answer> PipelineRuns::Make(StopCheck stop,
                                                             const Executor& executor) {
  constexpr int32_t kAtOnce = 5;
  if (absl::Status status = CheckLength(); !status.ok()) return status;
  std::vector<Wanted> others;
  const bool links_matter = scenario_.workers > 1 || scenario_.pipeline->layout.devices > 1;
  if (scenario_.workers > 1) others.push_back({.alone = true});
  if (is_modelled_) {
    others.push_back({.slower = 1 + Worlds::kSlowerBy});
    others.push_back({.wider = Worlds::kWiderBy});
  }
  if (links_matter && scenario_.assumed.Has(Assumed::kLinkRate))
    others.push_back({.half_rate = true});
  do {
    std::vector<Wanted> wanted;
    const auto made = static_cast<int32_t>(runs_.size());
    const int32_t more = is_random_ ? std::min(kAtOnce, options_.replications - made) : 1;
    wanted.reserve(static_cast<size_t>(more));
    for (int32_t i = 0; i < more; ++i) wanted.push_back({.replication = made + i});
    if (absl::Status status = RunAll(wanted, stop, executor); !status.ok()) {
      if (!IsTimeBudgetSpent(status)) return status;
      for (const Wanted& one : wanted)
        if (one.run.ok()) runs_.push_back(*one.run);
      if (runs_.empty()) return status;
      break;
    }
    for (const Wanted& one : wanted) runs_.push_back(*one.run);
  } while (!IsPreciseEnough());
  if (absl::Status status = RunAll(others, stop, executor);
      !status.ok() && !IsTimeBudgetSpent(status))
    return status;
  const double first = runs_.front()->estimate.steps_per_second;
  for (const Wanted& one : others) {
    if (!one.run.ok()) continue;
    const double rate = (*one.run)->estimate.steps_per_second;
    const double ratio = rate / first;
    if (one.alone) alone_ = rate;
    if (one.half_rate) half_rate_ = ratio;
    if (one.slower != 1) sensitivity_.to_mean = std::log(ratio) / std::log1p(Worlds::kSlowerBy);
    if (one.wider != 1) {
      sensitivity_.AnswerToWider(
          std::log(ratio), Worlds::kWiderBy,
          MostOfWaiting(model_.own_deviation,
                        scenario_.workers * scenario_.pipeline->layout.devices));
    }
  }
  PipelinePredictor::Answer answer;
  Summarize(answer.prediction);
  if (absl::Status status = Describe(stop, answer.prediction);
      !status.ok() && !IsTimeBudgetSpent(status))
    return status;
  answer.events = events_;
  for (const auto& run : runs_) answer.runs.push_back(run->estimate.steps_per_second);
  return answer;
}

void PipelineRuns::Summarize(Prediction& prediction) const {
  const MeanInterval mean = StepsPerSecond();
  const double workers = scenario_.workers;
  const auto batch = static_cast<double>(scenario_.ExamplesPerStep(profile_));
  prediction.scenario = scenario_;
  prediction.steps_per_second = mean.mean * workers;
  prediction.examples_per_second = prediction.steps_per_second * batch;
  std::vector<RunEstimate> estimates;
  StepTimeHistogram step_times;
  for (const auto& run : runs_) {
    estimates.push_back(run->estimate);
    step_times.Merge(run->step_times);
  }
  prediction.completions = runs_.front()->completions;
  const Interval single = SingleRunInterval(estimates, options_.confidence_level);
  ModelError error =
      is_modelled_ ? MeasuredModelError(scenario_, plan_.recorded_ranks) : ModelError{};
  if (options_.model_error_fraction.has_value())
    error = {.fraction = *options_.model_error_fraction, .source = "as asked for"};
  TellCertainty({.simulation = mean.half_width / mean.mean,
                 .input = is_modelled_ ? InputErrorOf(profile_, model_, sensitivity_,
                                                      options_.confidence_level)
                                       : InputError{},
                 .model = error},
                {.lower = single.lower * batch * workers,
                 .upper = single.upper * batch * workers,
                 .level = single.level},
                prediction);
  prediction.step_time = StepTimeOf(step_times);
  const double alone = scenario_.workers == 1 || alone_ == 0 ? mean.mean : alone_;
  prediction.speedup = workers * mean.mean / alone;
  prediction.scaling_efficiency = prediction.speedup / workers;
  prediction.replications = static_cast<int32_t>(runs_.size());
  prediction.passes = plan_.PassesOf(scenario_);
  if (options_.horizon == Horizon::kSteadyState) prediction.steps_per_worker = steps_;
  prediction.devices = scenario_.workers * scenario_.DevicesPerWorker(profile_);
  Warn(prediction);
}

void PipelineRuns::Warn(Prediction& prediction) const {
  const auto warn = [&](Warning::Reason reason, std::string message) {
    prediction.warnings.push_back({.reason = reason, .message = std::move(message)});
  };
  if (options_.horizon == Horizon::kFirstSteps) {
    prediction.steady_state = false;
    warn(Warning::Reason::kFiniteHorizon,
         absl::StrFormat("of the first %d steps of each worker, as asked for: no steady state",
                         options_.horizon_steps));
  } else if (!is_random_) {
    warn(Warning::Reason::kNothingRandom,
         "nothing is random here (one recorded step, fixed order and start), so the interval has "
         "no width and says nothing of real variation");
  }
  WarnOfPrecision(options_, StepsPerSecond(), static_cast<int32_t>(runs_.size()), prediction);
  if (half_rate_ == 0) return;
  prediction.at_half_the_rate = prediction.examples_per_second * half_rate_;
  warn(Warning::Reason::kLinkRateNotMeasured,
       absl::StrCat(NotMeasuredText(scenario_), ": at half of that ",
                    NumberText(*prediction.at_half_the_rate), " examples/s"));
}

absl::Status PipelineRuns::Describe(StopCheck stop, Prediction& prediction) {
  const PipelineLayout& layout = scenario_.pipeline->layout;
  PipelineJob job = JobOfRun({});
  job.counted_from = warmup_;
  const absl::StatusOr<PipelineShares> shares = SharesOf(job, stop, SpeedWithDevice(profile_, 2));
  if (!shares.ok()) return shares.status();
  PipelineReport report{.idle_fraction = shares->idle_fraction,
                        .bubble_fraction = shares->bubble_fraction,
                        .imbalance_fraction = shares->imbalance_fraction,
                        .transfer_fraction = shares->transfer_fraction,
                        .reduction_fraction = shares->reduction_fraction,
                        .rest_fraction = shares->rest_fraction};
  double total = 0;
  for (int32_t device = 0; device < layout.devices; ++device) {
    PipelineReport::Device& of = report.devices.emplace_back();
    double computed = 0;
    for (int32_t column = 0; column < job.replicas; ++column)
      computed += job.stands_for[Index(column)] *
                  ToSeconds(shares->run.computation[Index(column * layout.devices + device)]);
    of.utilization = computed / scenario_.workers / shares->step_seconds / (steps_ - warmup_);
    total += of.utilization / layout.devices;
    of.chunks_in_flight = shares->run.chunks_in_flight[Index(device)];
    const DeviceMemory memory = MemoryOfDevice(plan_, scenario_, device);
    if (plan_.knows_memory) of.memory_bytes = static_cast<int64_t>(memory.bytes());
    if (memory.bytes() > (prediction.memory ? prediction.memory->bytes() : 0))
      prediction.memory = memory;
    of.micro_batch_seconds = load_[Index(device)];
    of.gradient_bytes = plan_.gradient_bytes[Index(device)];
    of.first_operations = plan_.first_by_device[Index(device)];
  }
  report.slowest_device =
      static_cast<int32_t>(std::max_element(load_.begin(), load_.end()) - load_.begin());
  report.bottleneck = shares->bottleneck;
  report.bottleneck_gain = shares->saved_fraction / (1 - shares->saved_fraction);
  prediction.utilization = {{.resource = Resource::kWorker, .index = 0, .fraction = total}};
  prediction.most_used = prediction.utilization.front();
  prediction.bottleneck = prediction.most_used;
  if (report.bottleneck == PipelineBottleneck::kTransfers ||
      report.bottleneck == PipelineBottleneck::kReductions)
    prediction.bottleneck = {
        .resource = Resource::kCollective, .index = 0, .fraction = shares->saved_fraction};
  prediction.exposed_communication_fraction = report.transfer_fraction + report.reduction_fraction;
  prediction.pipeline = std::move(report);
  return absl::OkStatus();
}

}  // namespace

double ExpectedEvents(const PipelineLayout& layout, const SimulationOptions& options) {
  constexpr double kOtherRuns = 9;  // of one replica, of other worlds, of shares
  const double of_step = 2.0 * kEventsOfWork * layout.stages() * layout.micro_batches;
  double steps = options.steps_per_worker;
  if (options.horizon == Horizon::kFirstSteps) steps = options.horizon_steps;
  if (options.automatic_steps)
    steps = std::clamp<double>(static_cast<double>(kEventsOfRun) / of_step, kLeastSteps, kSteps);
  return of_step * steps * (options.replications + kOtherRuns);
}

PipelinePredictor::PipelinePredictor(const Profile& profile, const SimulationOptions& options)
    : profile_(profile), options_(options), model_(StepModelOf(profile, StepPart::kWorkers)) {}

absl::StatusOr<PipelinePredictor::Answer> PipelinePredictor::Predict(const Scenario& scenario,
                                                                     const PipelinePlan& plan,
                                                                     StopCheck stop,
                                                                     const Executor& executor,
                                                                     const KnownRuns& known) const {
  return PipelineRuns(profile_, options_, model_, scenario, plan, known).Make(stop, executor);
}

PipelineJob PipelinePredictor::FirstRun(const Scenario& scenario, const PipelinePlan& plan) const {
  const KnownRuns none;
  return PipelineRuns(profile_, options_, model_, scenario, plan, none).FirstRun();
}

absl::Status PipelineFailure(const absl::Status& status, const Scenario& scenario) {
  if (status.code() != absl::StatusCode::kFailedPrecondition) return status;
  return MakeError(
      absl::StatusCode::kFailedPrecondition,
      absl::StrCat(std::string(status.message()), ": schedule ",
                   std::string(PipelineScheduleName(scenario.pipeline->layout.schedule)),
                   " needs receives posted earlier, EAGER for instance"),
      {.reason = "PIPELINE_DEADLOCK"});
}

}  // namespace stepcast
