#include "core/calibrate/lone_transfers.h"

#include <algorithm>

#include "core/calibrate/recorded_phase.h"

namespace stepcast {

absl::StatusOr<std::vector<ParsingMeasurement>> MeasureLoneTransfers(const Profile& profile,
                                                                     StopCheck stop) {
  std::vector<ParsingMeasurement> measurements;
  for (const RecordedStep& step : profile.steps()) {
    if (absl::Status status = stop(); !status.ok()) return status;
    for (const Resource direction : {Resource::kDownlink, Resource::kUplink}) {
      const RecordedPhase phase = PhaseOf(profile, step, direction, RequestOrder::kGraph);
      for (const BusyPeriod& period : BusyPeriodsOf(phase)) {
        const auto first = phase.begin() + static_cast<std::ptrdiff_t>(period.first);
        const auto ends_first =
            std::min_element(first, first + static_cast<std::ptrdiff_t>(period.count),
                             [](const RecordedTransfer& a, const RecordedTransfer& b) {
                               return a.end_ns < b.end_ns;
                             });
        if (ends_first != first || measurements.size() == kMaxParsingMeasurements) continue;
        const double link_seconds =
            first->size_bytes / profile.platform().bandwidth_bytes_per_second;
        measurements.push_back(
            {.size_bytes = static_cast<int64_t>(first->size_bytes),
             .seconds =
                 std::max(0.0, 1e-9 * (first->at_hand_ns() - first->start_ns) - link_seconds)});
      }
    }
  }
  return measurements;
}

}  // namespace stepcast
