// The payload bandwidth of a link, and what a busy period costs before it flows, from recordings of
// one worker.
//
// In a busy period the bytes that have ended grow with time. Where a line explains that growth
// (streams that are sent whole), its slope is the bandwidth, whatever was lost at the start;
// elsewhere (streams that alternate) only the whole period tells, all bytes over all time, start
// included. Over the periods: a robust mean (measured_line.h), so that periods in which something
// was lost or retransmitted count as outliers, with Student's t. What a recorded transfer took by
// itself is not used: it holds the wait behind others. Threads: pure functions.
#pragma once

#include <optional>
#include <span>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/calibrate/recorded_phase.h"

namespace stepcast {

struct ValueInterval {
  double value = 0;
  double lower = 0;
  double upper = 0;
};

struct PayloadBandwidth {
  ValueInterval bytes_per_second;
  // From a request that finds the link idle to what its first byte would have had to take: the
  // bytes' time is taken off. Not below 0.
  ValueInterval start_seconds;
  int periods = 0;  // busy periods used: those of at least a quarter of the largest one's bytes
  int outlier_periods = 0;
  int whole_periods = 0;  // of those used, such as only the whole tells of
};

// Empty where no busy period has a length. Cost: O(n log n) in transfers, and some 2 ms a period.
// Failure: what `stop` returns. REQUIRES: 0 < level < 1.
absl::StatusOr<std::optional<PayloadBandwidth>> MeasurePayloadBandwidth(
    std::span<const RecordedPhase> phases, double level, StopCheck stop);

}  // namespace stepcast
