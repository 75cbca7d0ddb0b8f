#include "core/calibrate/parsing_overhead_fit.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/calibrate/recorded_phase.h"

namespace stepcast {

namespace {

void CheckMeasurement(const ParsingMeasurement& measurement, size_t index, FaultList& faults) {
  const auto field = [&](const char* name) {
    return absl::StrCat("measurements[", index, "].", name);
  };
  if (measurement.size_bytes < 0 || measurement.size_bytes > kMaxParsedBytes) {
    faults.Add(field("size_bytes"),
               absl::StrCat(measurement.size_bytes, " is not from 0 to ", kMaxParsedBytes));
  }
  // Not a number fails both comparisons.
  if (!(measurement.seconds >= 0 && measurement.seconds <= kMaxParsingSeconds)) {
    faults.Add(field("seconds"),
               absl::StrCat(measurement.seconds, " is not from 0 to ", kMaxParsingSeconds));
  }
}

void CheckCount(const std::vector<ParsingMeasurement>& measurements, FaultList& faults) {
  if (measurements.size() < kFewestParsingMeasurements) {
    faults.Add("measurements",
               absl::StrCat(measurements.size(), " are too few: a line and how sure it is need ",
                            kFewestParsingMeasurements));
  } else if (measurements.size() > kMaxParsingMeasurements) {
    faults.Add("measurements",
               absl::StrCat(measurements.size(), " are more than ", kMaxParsingMeasurements));
  } else if (std::all_of(measurements.begin(), measurements.end(),
                         [&](const ParsingMeasurement& m) {
                           return m.size_bytes == measurements.front().size_bytes;
                         })) {
    faults.Add("measurements", absl::StrCat("all are of ", measurements.front().size_bytes,
                                            " bytes: what a byte costs and what a tensor costs can "
                                            "only be told apart with another size"));
  }
}

}  // namespace

absl::StatusOr<ParsingOverheadQuery> ResolveParsingOverhead(const ParsingOverheadDraft& draft) {
  FaultList faults;
  ParsingOverheadQuery query;
  query.confidence_level = draft.confidence_level.value_or(query.confidence_level);
  if (!(query.confidence_level > 0 && query.confidence_level < 1)) {
    faults.Add("confidence_level",
               absl::StrCat(query.confidence_level, " is not above 0 and below 1"));
  }
  CheckCount(draft.measurements, faults);
  for (size_t i = 0; i < draft.measurements.size() && !faults.full(); ++i)
    CheckMeasurement(draft.measurements[i], i, faults);
  if (!faults.empty()) return FaultsError("REQUEST_INVALID", std::move(faults).Take());
  query.measurements.reserve(draft.measurements.size());
  for (const ParsingMeasurement& m : draft.measurements)
    query.measurements.push_back({.x = static_cast<double>(m.size_bytes), .y = m.seconds});
  return query;
}

absl::StatusOr<ParsingOverheadFit> FitParsingOverhead(const ParsingOverheadQuery& query,
                                                      StopCheck stop) {
  if (absl::Status status = stop(); !status.ok()) return status;
  return ParsingOverheadFit{.fit = FitAboveZero(query.measurements, query.confidence_level),
                            .least_squares = FitLeastSquares(query.measurements),
                            .confidence_level = query.confidence_level};
}

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
