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
  partly.gathers.clear();
  for (auto& of_stage : partly.reductions) of_stage.clear();
  const PipelineJob with_transfers = partly;
  partly.bytes_per_second = std::numeric_limits<double>::infinity();
  partly.latency = {};
  partly.receives = PipelineReceives::kEager;
  partly.transport = PipelineTransport::kIdeal;
  PipelineJob equal = partly;
  equal.times = MeanTimes(job, computation);
  equal.scale.clear();
  equal.step_scale.clear();
  PipelineJob with_reductions = job;
  with_reductions.tails = partly.tails;
  with_reductions.gathers.clear();
  PipelineJob faster = job;
  faster.scale.resize(shares.run.computation.size(), 1);
  for (double& scale : faster.scale) scale /= twice;
  const absl::StatusOr<PipelineRun> sooner = SimulatePipeline(faster, stop);
  if (!sooner.ok()) return sooner.status();
  shares.faster_seconds = StepSeconds(job, *sooner);
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
  return shares;
}

}  // namespace stepcast
