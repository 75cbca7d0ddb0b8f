#include "core/compare/collective_models.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/model/all_reduce.h"

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

}  // namespace stepcast
