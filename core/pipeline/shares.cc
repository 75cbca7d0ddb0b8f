#include "core/pipeline/shares.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace stepcast {
namespace {

// 1 where there are none.
double MeanOf(const std::vector<double>& scales) {
  double mean = scales.empty() ? 1 : 0;
  for (const double one : scales) mean += one / static_cast<double>(scales.size());
  return mean;
}

double MeanOfAll(const std::vector<std::vector<double>>& steps) {
  std::vector<double> means;
  for (const std::vector<double>& step : steps) means.push_back(MeanOf(step));
  return MeanOf(means);
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
  const double scale = MeanOf(job.scale) * MeanOfAll(job.step_scale);
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
  double computation = 0;
  for (const Span span : shares.run.computation) computation += ToSeconds(span);
  computation /= static_cast<double>(shares.run.computation.size()) * job.steps;
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
