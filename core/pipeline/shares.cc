#include "core/pipeline/shares.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace stepcast {
namespace {

// The mean of what is told by replica and device, each replica as often as it stands for others.
template <typename Value>
double MeanOf(const PipelineJob& job, size_t count, Value value) {
  double sum = 0;
  double weights = 0;
  for (size_t x = 0; x < count; ++x) {
    const size_t replica = x / Index(job.layout.devices);
    const double weight = job.stands_for.empty() ? 1 : job.stands_for[replica];
    sum += weight * value(x);
    weights += weight;
  }
  return sum / weights;
}

// 1 where there are none.
double MeanScale(const PipelineJob& job, const std::vector<double>& scales) {
  return scales.empty() ? 1 : MeanOf(job, scales.size(), [&](size_t x) { return scales[x]; });
}

double MeanScale(const PipelineJob& job) {
  double of_steps = job.step_scale.empty() ? 1 : 0;
  for (const std::vector<double>& step : job.step_scale)
    of_steps += MeanScale(job, step) / static_cast<double>(job.step_scale.size());
  return MeanScale(job, job.scale) * of_steps;
}

// Every stage of every device as the mean of all.
std::vector<std::vector<StageTimes>> MeanTimes(const PipelineJob& job) {
  double forward = 0;
  double backward = 0;
  double weight = 0;
  for (const auto& of_step : job.times)
    for (const StageTimes& times : of_step) {
      forward += static_cast<double>(times.forward.ticks);
      backward += static_cast<double>(times.backward.ticks);
      weight += static_cast<double>(times.backward_weight.ticks);
    }
  const double scale = MeanScale(job);
  const auto stages = static_cast<double>(job.times.size() * job.times[0].size());
  const auto mean = [&](double sum) { return Span{static_cast<int64_t>(sum * scale / stages)}; };
  const StageTimes of_stage{.forward = mean(forward),
                            .backward = mean(backward),
                            .backward_weight = mean(weight),
                            .last_backward_extra = {}};
  return {std::vector<StageTimes>(job.times[0].size(), of_stage)};
}

double StepSeconds(const PipelineRun& run) {
  const size_t last = run.step_ends.size() - 1;
  const size_t warm = (last + 1) / 2;
  const Instant from = warm == 0 ? Instant{} : run.step_ends[warm - 1];
  return ToSeconds(run.step_ends[last] - from) / static_cast<double>(last + 1 - warm);
}

}  // namespace

absl::StatusOr<PipelineShares> SharesOf(const PipelineJob& job, StopCheck stop) {
  absl::StatusOr<PipelineRun> run = SimulatePipeline(job, stop);
  if (!run.ok()) return run.status();
  PipelineShares shares{.step_seconds = StepSeconds(*run), .run = *std::move(run)};
  const std::vector<Span>& spans = shares.run.computation;
  const double computation =
      MeanOf(job, spans.size(), [&](size_t x) { return ToSeconds(spans[x]); }) / job.steps;
  // From nothing but computation to the job: every reason's step is no shorter than the one before,
  // and no longer than the job's.
  PipelineJob partly = job;
  partly.tails.assign(job.tails.size(), Span{});
  for (auto& of_stage : partly.reductions) of_stage.clear();
  const PipelineJob with_transfers = partly;
  partly.bytes_per_second = std::numeric_limits<double>::infinity();
  partly.latency = {};
  partly.receives = PipelineReceives::kEager;
  partly.transport = PipelineTransport::kIdeal;
  PipelineJob equal = partly;
  equal.times = MeanTimes(job);
  equal.scale.clear();
  equal.step_scale.clear();
  PipelineJob with_reductions = job;
  with_reductions.tails = partly.tails;
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
    const double step = std::clamp(StepSeconds(*other), before, shares.step_seconds);
    *share = (step - before) / shares.step_seconds;
    before = step;
  }
  shares.rest_fraction = (shares.step_seconds - before) / shares.step_seconds;
  shares.idle_fraction = 1 - computation / shares.step_seconds;
  return shares;
}

}  // namespace stepcast
