#include "core/pipeline/shares.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace stepcast {
namespace {

// Seconds a counted step, the mean of all devices: each replica as often as it stands for others.
double MeanComputation(const PipelineJob& job, const PipelineRun& run) {
  double sum = 0;
  double weights = 0;
  for (size_t x = 0; x < run.computation.size(); ++x) {
    const double weight =
        job.stands_for.empty() ? 1 : job.stands_for[x / Index(job.layout.devices)];
    sum += weight * ToSeconds(run.computation[x]);
    weights += weight;
  }
  return sum / weights / (job.steps - job.counted_from);
}

// Every stage of every device as the mean of all, so that they compute that long a step.
std::vector<std::vector<StageTimes>> MeanTimes(const PipelineJob& job, double computation) {
  const bool split = SplitsBackward(job.layout.schedule);
  double forward = 0;
  double backward = 0;
  double weight = 0;
  for (const auto& of_step : job.times)
    for (const StageTimes& times : of_step) {
      forward += ToSeconds(times.forward);
      backward += ToSeconds(times.backward);
      if (split) weight += ToSeconds(times.backward_weight);
    }
  const double all = forward + backward + weight;
  const double of_chunk =
      computation / (static_cast<double>(job.layout.micro_batches) * job.layout.chunks);
  const auto part = [&](double sum) { return FromSeconds(all > 0 ? of_chunk * sum / all : 0); };
  return {std::vector<StageTimes>(job.times[0].size(), {.forward = part(forward),
                                                        .backward = part(backward),
                                                        .backward_weight = part(weight),
                                                        .last_backward_extra = {}})};
}

double StepSeconds(const PipelineJob& job, const PipelineRun& run) {
  const Instant from =
      job.counted_from == 0 ? Instant{} : run.step_ends[Index(job.counted_from - 1)];
  return ToSeconds(run.step_ends.back() - from) / (job.steps - job.counted_from);
}

void FreeTransfers(PipelineJob& job) {
  job.bytes_per_second = std::numeric_limits<double>::infinity();
  job.latency = {};
  job.receives = PipelineReceives::kEager;
  job.transport = PipelineTransport::kIdeal;
}

void FreeReductions(PipelineJob& job) {
  job.gathers.clear();
  for (auto& of_stage : job.reductions) of_stage.clear();
}

// Every device as fast as the mean in every step: `computation` seconds.
void MakeEqual(PipelineJob& job, double computation) {
  job.times = MeanTimes(job, computation);
  job.scale.clear();
  job.step_scale.clear();
}

// The job without a part of its step, which is neither its computation nor the bubble.
PipelineJob Without(PipelineBottleneck part, PipelineJob job, double computation) {
  switch (part) {
    case PipelineBottleneck::kImbalance:
      MakeEqual(job, computation);
      break;
    case PipelineBottleneck::kTransfers:
      FreeTransfers(job);
      break;
    case PipelineBottleneck::kReductions:
      FreeReductions(job);
      break;
    default:
      job.tails.assign(job.tails.size(), Span{});
      break;
  }
  return job;
}

// The part whose change saves most. One is as good as its share where nothing else comes out, so
// those of the greatest shares are simulated until none that was not could save more.
absl::Status FindBottleneck(const PipelineJob& job, StopCheck stop, double twice,
                            double computation, PipelineShares& shares) {
  const auto saved_by = [&](const PipelineJob& changed) -> absl::StatusOr<double> {
    const absl::StatusOr<PipelineRun> run = SimulatePipeline(changed, stop);
    if (!run.ok()) return run.status();
    return std::max(0.0, 1 - StepSeconds(job, *run) / shares.step_seconds);
  };
  PipelineJob faster = job;
  faster.scale.resize(shares.run.computation.size(), 1);
  for (double& scale : faster.scale) scale /= twice;
  const absl::StatusOr<double> by_computation = saved_by(faster);
  if (!by_computation.ok()) return by_computation.status();
  std::array<double, 6> saved = {*by_computation,           shares.bubble_fraction,
                                 shares.imbalance_fraction, shares.transfer_fraction,
                                 shares.reduction_fraction, shares.rest_fraction};
  // A bubble cannot be left out, so its share is what it is worth.
  std::array<bool, 6> is_known = {true, true};
  while (true) {
    const auto most =
        static_cast<size_t>(std::max_element(saved.begin(), saved.end()) - saved.begin());
    shares.bottleneck = static_cast<PipelineBottleneck>(most);
    shares.saved_fraction = saved[most];
    if (is_known[most] || saved[most] == 0) return absl::OkStatus();
    const absl::StatusOr<double> by_part = saved_by(Without(shares.bottleneck, job, computation));
    if (!by_part.ok()) return by_part.status();
    saved[most] = *by_part;
    is_known[most] = true;
  }
}

}  // namespace

absl::StatusOr<PipelineShares> SharesOf(const PipelineJob& job, StopCheck stop, double twice) {
  absl::StatusOr<PipelineRun> run = SimulatePipeline(job, stop);
  if (!run.ok()) return run.status();
  PipelineShares shares{.step_seconds = StepSeconds(job, *run), .run = *std::move(run)};
  // The steps of the time between them, in which no device computes longer than that.
  const double computation = std::min(MeanComputation(job, shares.run), shares.step_seconds);
  // From nothing but computation to the job: every reason's step is no shorter than the one before,
  // and no longer than the job's.
  PipelineJob partly = job;
  partly.tails.assign(job.tails.size(), Span{});
  FreeReductions(partly);
  const PipelineJob with_transfers = partly;
  FreeTransfers(partly);
  PipelineJob equal = partly;
  MakeEqual(equal, computation);
  PipelineJob with_reductions = job;
  with_reductions.tails = partly.tails;
  with_reductions.gathers.clear();
  const std::array<std::pair<const PipelineJob*, double*>, 4> reasons = {{
      {&equal, &shares.bubble_fraction},
      {&partly, &shares.imbalance_fraction},
      {&with_transfers, &shares.transfer_fraction},
      {&with_reductions, &shares.reduction_fraction},
  }};
  double before = computation;
  for (const auto& [without, share] : reasons) {
    absl::StatusOr<PipelineRun> other = SimulatePipeline(*without, stop);
    if (!other.ok()) return other.status();
    const double step = std::clamp(StepSeconds(job, *other), before, shares.step_seconds);
    *share = (step - before) / shares.step_seconds;
    before = step;
  }
  shares.rest_fraction = (shares.step_seconds - before) / shares.step_seconds;
  shares.idle_fraction = 1 - computation / shares.step_seconds;
  if (absl::Status status = FindBottleneck(job, stop, twice, computation, shares); !status.ok())
    return status;
  return shares;
}

}  // namespace stepcast
