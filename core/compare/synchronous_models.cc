#include "core/compare/synchronous_models.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "core/base/index.h"
#include "core/model/all_reduce.h"
#include "core/predict/pipeline_job.h"

namespace stepcast {

namespace {

constexpr double kMaxExponent = 10;

// a and b of the formula.
PolluxFormula FitNetwork(const std::vector<CollectiveStep>& steps) {
  double count = 0;
  double sum_x = 0;
  double sum_y = 0;
  double sum_xx = 0;
  double sum_xy = 0;
  for (const CollectiveStep& step : steps) {
    if (step.workers < 2) continue;
    const double x = step.workers - 2;
    count += 1;
    sum_x += x;
    sum_y += step.collectives;
    sum_xx += x * x;
    sum_xy += x * step.collectives;
  }
  if (count == 0) return {};
  const double spread = count * sum_xx - sum_x * sum_x;
  double slope = spread > 0 ? std::max(0.0, (count * sum_xy - sum_x * sum_y) / spread) : 0;
  double offset = (sum_y - slope * sum_x) / count;
  if (offset < 0) {
    offset = 0;
    slope = sum_xy / sum_xx;
  }
  return {.network_seconds = offset, .network_seconds_per_worker = slope};
}

double SquaredLogarithms(const PolluxFormula& formula, const std::vector<CollectiveStep>& steps) {
  double sum = 0;
  for (const CollectiveStep& step : steps) {
    const double ratio = formula.StepSeconds(step.computation, step.workers) / step.simulated;
    if (ratio > 0 && std::isfinite(ratio)) sum += std::log(ratio) * std::log(ratio);
  }
  return sum;
}

// The exponent of the least sum among first, first + by, ..., last.
double BestExponent(PolluxFormula formula, const std::vector<CollectiveStep>& steps, double first,
                    double last, double by) {
  double best = first;
  double least = std::numeric_limits<double>::infinity();
  const auto count = static_cast<int>(std::lround((last - first) / by));
  for (int i = 0; i <= count; ++i) {
    formula.exponent = first + i * by;
    const double sum = SquaredLogarithms(formula, steps);
    if (sum < least) {
      least = sum;
      best = formula.exponent;
    }
  }
  return best;
}

// The greatest rate of any collective that contends with nothing.
double LoneBandwidth(const AllReduce& job) {
  const Contention& contention = *job.contention;
  const auto rate = [&](int32_t threads) {
    return BytesPerSecond(contention.alone, contention.gamma4, threads);
  };
  double greatest = job.threads + job.thread_channels > 0 ? rate(ThreadsOf(job, HUGE_VAL)) : 0;
  if (const auto* given = std::get_if<GradientGroups>(&job.fusion)) {
    for (const GradientGroup& group : given->groups)
      greatest = std::max(greatest, rate(group.threads.value_or(job.threads)));
  }
  return greatest;
}

double LinkBandwidth(const Scenario& scenario) {
  const AllReduce& job = scenario.all_reduce();
  if (job.contention.has_value()) return LoneBandwidth(job);
  return scenario.workers <= job.workers_per_node && job.workers_per_node > 1
             ? job.intra_node_bandwidth_bytes_per_second
             : scenario.bandwidth_bytes_per_second;
}

// The bytes that a ring sends over each link, as a share of the buffer.
double RingShare(Collective kind, int32_t workers) {
  const double others = static_cast<double>(workers - 1) / workers;
  if (kind == Collective::kAllReduce) return 2 * others;
  return kind == Collective::kBroadcast && workers > 1 ? 1 : others;
}

}  // namespace

double PolluxFormula::StepSeconds(double computation_seconds, int32_t workers) const {
  if (workers < 2) return computation_seconds;
  const double network = network_seconds + network_seconds_per_worker * (workers - 2);
  const double larger = std::max(computation_seconds, network);
  if (!(larger > 0)) return 0;
  // Shares of the larger one, so that no power is out of range.
  return larger * std::pow(std::pow(computation_seconds / larger, exponent) +
                               std::pow(network / larger, exponent),
                           1 / exponent);
}

PolluxFormula FitPollux(const std::vector<CollectiveStep>& steps) {
  PolluxFormula formula = FitNetwork(steps);
  const double near = BestExponent(formula, steps, 1, kMaxExponent, 0.1);
  formula.exponent = BestExponent(formula, steps, std::max(1.0, near - 0.1),
                                  std::min(kMaxExponent, near + 0.1), 0.01);
  return formula;
}

double PaleoStepSeconds(const Profile& profile, const Scenario& scenario,
                        double computation_seconds) {
  double bytes = 0;
  for (const Operation& operation : profile.operations()) {
    if (IsAcrossWorkers(operation))
      bytes += RingShare(operation.collective, scenario.workers) *
               static_cast<double>(operation.size_bytes);
  }
  return computation_seconds + bytes / LinkBandwidth(scenario);
}

absl::StatusOr<CoarseTensorsAnswer> PredictByCoarseCollectives(const Profile& profile,
                                                               const Scenario& scenario,
                                                               StopCheck stop) {
  // It knows one worker; of a recording of several the first.
  if (profile.recorded_workers() > 1)
    return PredictByCoarseCollectives(profile.OfWorker(0), scenario, stop);
  // Two workers' ring without latency sends a buffer's size over each link.
  Scenario coarse = scenario;
  coarse.workers = 2;
  coarse.bandwidth_bytes_per_second = LinkBandwidth(scenario);
  coarse.communication = AllReduce{};
  const absl::StatusOr<std::shared_ptr<const RankedGraph>> ranked =
      RankedGraph::Make(profile, coarse, stop);
  if (!ranked.ok()) return ranked.status();
  const absl::StatusOr<RecordedRun> run =
      RunRecordedSteps(profile, coarse, **ranked, nullptr, stop);
  if (!run.ok()) return run.status();
  const int32_t steps = (*ranked)->job.program->step_count();
  return CoarseTensorsAnswer{
      .steps_per_second = scenario.workers * (steps / ToSeconds(run->length)),
      .simulation = run->simulation};
}

namespace {

// Seconds of the gradients of weights of a micro-batch, by device.
double WeightSeconds(const PipelinePlan& plan, const PipelineLayout& layout, int32_t device) {
  double seconds = 0;
  for (const auto& of_step : plan.times)
    for (int32_t chunk = 0; chunk < layout.chunks; ++chunk)
      seconds += ToSeconds(of_step[Index(layout.StageOf(device, chunk))].backward_weight) /
                 static_cast<double>(plan.times.size());
  return seconds;
}

}  // namespace

PipelineInputs PipelineInputsOf(const PipelinePlan& plan, const Scenario& scenario) {
  const PipelineLayout& layout = scenario.pipeline->layout;
  const std::vector<double> load = plan.MicroBatchSeconds(layout);
  const auto slowest = std::max_element(load.begin(), load.end());
  const auto device = static_cast<int32_t>(slowest - load.begin());
  PipelineInputs inputs{.slowest_seconds = *slowest,
                        .slowest_weight_seconds = WeightSeconds(plan, layout, device)};
  for (const double seconds : load) inputs.mean_seconds += seconds / layout.devices;
  if (layout.devices > 1) {
    const auto bytes = *std::max_element(plan.output_bytes.begin(), plan.output_bytes.end());
    inputs.transfer_seconds =
        scenario.pipeline->latency_seconds +
        static_cast<double>(bytes) / scenario.pipeline->bandwidth_bytes_per_second;
  }
  for (const Span tail : plan.TailsOf(scenario))
    inputs.rest_seconds = std::max(inputs.rest_seconds, ToSeconds(tail));
  return inputs;
}

std::optional<double> BubbleFormulaSeconds(const PipelineInputs& inputs,
                                           const PipelineLayout& layout) {
  const double filling = layout.devices - 1;
  if (layout.schedule == PipelineSchedule::kZeroBubbleV) return std::nullopt;
  if (layout.schedule == PipelineSchedule::kZeroBubble1)
    return layout.micro_batches * inputs.slowest_seconds +
           filling * (inputs.slowest_seconds - 2 * inputs.slowest_weight_seconds);
  return (layout.micro_batches + filling / layout.chunks) * inputs.slowest_seconds;
}

double SimaiStepSeconds(const PipelineInputs& inputs, const PipelinePlan& plan,
                        const Scenario& scenario) {
  const PipelineLayout& layout = scenario.pipeline->layout;
  const PipelineJob job = JobOf(plan, scenario);
  double reductions = 0;
  for (int32_t device = 0; device < layout.devices; ++device) {
    const auto [reduces, gathers] = CollectiveSecondsOf(job, device);
    reductions = std::max(reductions, reduces + gathers);
  }
  const double m = layout.micro_batches;
  return (m + (layout.devices - 1.0) / layout.chunks) * inputs.mean_seconds +
         2 * m * layout.chunks * inputs.transfer_seconds + reductions + inputs.rest_seconds;
}

}  // namespace stepcast
