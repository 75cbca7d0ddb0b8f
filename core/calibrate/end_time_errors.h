// The errors of modelled ends of transfers against recorded ones.
//
// The error of a transfer is |modelled end - recorded end| over the time from the start of its
// phase, the first request of its direction in its step, to its recorded end.
// Average, median, 95th percentile and maximum are as in Table 1 of ICPE 2020.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/calibrate/link_replay.h"
#include "core/calibrate/recorded_phase.h"

namespace stepcast {

struct EndTimeErrors {
  double average = 0;
  double median = 0;
  double p95 = 0;
  double maximum = 0;
  // Mean of e / (e + 2 %): what searches minimise. All transfers count in it, unlike in the median,
  // and none much more than another, unlike in the mean.
  double distance = 0;
  int64_t transfers = 0;
};

// Over all phases. Transfers that were recorded to end with the phase's start are left out. Cost:
// as LinkReplay, and linear in transfers. Failure: what `stop` returns.
absl::StatusOr<EndTimeErrors> MeasureEndTimes(std::span<const RecordedPhase> phases,
                                              const LinkSetting& setting, StopCheck stop);

// Median of what the transfers took since the start of their phase, as recorded over as modelled:
// above 1 the link was slower than the setting's. 1 where there is none.
absl::StatusOr<double> MedianStretch(std::span<const RecordedPhase> phases,
                                     const LinkSetting& setting, StopCheck stop);

// The distance alone.
absl::StatusOr<double> EndTimeDistance(std::span<const RecordedPhase> phases,
                                       const LinkSetting& setting, StopCheck stop);

}  // namespace stepcast
