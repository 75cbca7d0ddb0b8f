#include "core/calibrate/end_time_errors.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/calibrate/weighted_median.h"

namespace stepcast {

namespace {

constexpr double kHalfway = 0.02;

// Calls visit(recorded, modelled) for each transfer, in nanoseconds since the start of its phase.
template <typename Visit>
absl::Status ForEachEnd(std::span<const RecordedPhase> phases, const LinkSetting& setting,
                        StopCheck stop, Visit visit) {
  LinkReplay replay;
  int64_t services = kStopCheckInterval;
  for (const RecordedPhase& phase : phases) {
    for (const RecordedTransfer& transfer : phase)
      services += setting.ServicesOf(transfer.size_bytes);
    if (services >= kStopCheckInterval) {
      if (absl::Status status = stop(); !status.ok()) return status;
      services = 0;
    }
    const std::span<const double> at_hand = replay.AtHand(phase, setting);
    for (size_t i = 0; i < phase.size(); ++i) {
      const double start = phase.front().start_ns;
      if (phase[i].at_hand_ns() > start) visit(phase[i].at_hand_ns() - start, at_hand[i] - start);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EndTimeErrors> MeasureEndTimes(std::span<const RecordedPhase> phases,
                                              const LinkSetting& setting, StopCheck stop) {
  std::vector<double> errors;
  EndTimeErrors result;
  const absl::Status status =
      ForEachEnd(phases, setting, stop, [&](double recorded, double modelled) {
        const double error = std::abs(modelled - recorded) / recorded;
        errors.push_back(error);
        result.average += error;
        result.distance += error / (error + kHalfway);
      });
  if (!status.ok()) return status;
  if (errors.empty()) return result;
  result.transfers = static_cast<int64_t>(errors.size());
  result.average /= static_cast<double>(errors.size());
  result.distance /= static_cast<double>(errors.size());
  result.maximum = *std::max_element(errors.begin(), errors.end());
  result.p95 = Quantile(errors, 0.95);
  result.median = Median(std::move(errors));
  return result;
}

absl::StatusOr<double> MedianStretch(std::span<const RecordedPhase> phases,
                                     const LinkSetting& setting, StopCheck stop) {
  std::vector<double> stretches;
  const absl::Status status =
      ForEachEnd(phases, setting, stop, [&](double recorded, double modelled) {
        stretches.push_back(recorded / std::max(modelled, 1.0));
      });
  if (!status.ok()) return status;
  return stretches.empty() ? 1 : Median(std::move(stretches));
}

absl::StatusOr<double> EndTimeDistance(std::span<const RecordedPhase> phases,
                                       const LinkSetting& setting, StopCheck stop) {
  double sum = 0;
  int64_t count = 0;
  const absl::Status status =
      ForEachEnd(phases, setting, stop, [&](double recorded, double modelled) {
        const double error = std::abs(modelled - recorded) / recorded;
        sum += error / (error + kHalfway);
        ++count;
      });
  if (!status.ok()) return status;
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

}  // namespace stepcast
