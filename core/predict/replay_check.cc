#include "core/predict/replay_check.h"

#include <algorithm>

#include "core/communication/parameter_servers.h"
#include "core/engine/simulation.h"
#include "core/model/scenario.h"
#include "core/predict/replications.h"

namespace stepcast {

namespace {

// More than this per transfer is not dispatch or parsing any more.
constexpr double kMaxTransferSeconds = 0.01;
// Halves the interval to 1e-2 / 2^32 seconds, far below a nanosecond.
constexpr int kBisections = 32;

double RecordedStepSeconds(const Profile& profile) {
  double sum = 0;
  for (const RecordedStep& step : profile.steps())
    sum += static_cast<double>(*std::max_element(step.end_ns.begin(), step.end_ns.end()));
  return sum / 1e9 / static_cast<double>(profile.steps().size());
}

absl::StatusOr<double> ReplayedStepSeconds(const Profile& profile, double added_transfer_seconds,
                                           StopCheck stop) {
  absl::StatusOr<Scenario> resolved = ResolveScenario(profile, {});
  if (!resolved.ok()) return resolved.status();
  const Scenario scenario = AsTransferred(*std::move(resolved), added_transfer_seconds);
  const absl::StatusOr<std::shared_ptr<const RankedGraph>> ranked =
      RankedGraph::Make(profile, scenario, stop);
  if (!ranked.ok()) return ranked.status();
  JobGraph job = (*ranked)->JobOf(scenario);
  job.drawing = StepDrawing::kReplay;
  const RunOptions options{
      .steps_per_worker = job.step_count(), .start_offsets = {Span{}}, .keep_step_ends = true};
  const absl::StatusOr<RunResult> result = Simulate(job, options, stop);
  if (!result.ok()) return result.status();
  return ToSeconds(result->step_ends.front().back() - Instant{}) / job.step_count();
}

}  // namespace

absl::StatusOr<ReplayCheck> CheckReplay(const Profile& profile, StopCheck stop) {
  ReplayCheck check{.recorded_step_seconds = RecordedStepSeconds(profile)};
  const absl::StatusOr<double> replayed = ReplayedStepSeconds(profile, 0, stop);
  if (!replayed.ok()) return replayed.status();
  check.replayed_step_seconds = *replayed;
  if (check.gap() <= 0 || profile.has_collectives()) return check;
  // A step only grows with the overhead, up to queueing effects far smaller than the gap.
  double low = 0;
  double high = kMaxTransferSeconds;
  for (int i = 0; i < kBisections; ++i) {
    const double middle = (low + high) / 2;
    const absl::StatusOr<double> seconds = ReplayedStepSeconds(profile, middle, stop);
    if (!seconds.ok()) return seconds.status();
    (*seconds < check.recorded_step_seconds ? low : high) = middle;
  }
  check.fitted_transfer_seconds = low;
  return check;
}

}  // namespace stepcast
