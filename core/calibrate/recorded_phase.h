// The transfers of one direction in one recorded step: when their link was busy, what it carried
// then, and what a busy period costs before it flows.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/model/profile.h"

namespace stepcast {

// The transfers of one direction in one recorded step, and when their link was busy.
//
// A recorded start is a request and a recorded end is when the data was at hand (ICPE 2020, section
// 2), so an interval holds the wait behind others: only what all of them together did over time
// tells of the link.

struct RecordedTransfer {
  int32_t operation = 0;
  double size_bytes = 0;
  double start_ns = 0;  // requested
  double end_ns = 0;    // the last byte arrived: the profile's parsing overhead is taken off
  double parsing_ns = 0;

  double at_hand_ns() const { return end_ns + parsing_ns; }
};

// By start, then by what `PhaseOf` was told.
using RecordedPhase = std::vector<RecordedTransfer>;

// The order of requests that were recorded at the same instant.
enum class RequestOrder : uint8_t { kGraph, kRecordedEnd };

// Cost: O(n log n). REQUIRES: `direction` is a transfer's; the step is one of the profile's or as
// long.
RecordedPhase PhaseOf(const Profile& profile, const RecordedStep& step, Resource direction,
                      RequestOrder order);

// A time without a pause between requests that wait: from `first` on, so many transfers of the
// phase.
struct BusyPeriod {
  size_t first = 0;
  size_t count = 0;
  double bytes = 0;
  double start_ns = 0;
  double end_ns = 0;
};

// Cost: linear. REQUIRES: as PhaseOf gives it.
std::vector<BusyPeriod> BusyPeriodsOf(std::span<const RecordedTransfer> phase);

// The payload bandwidth of a link, and what a busy period costs before it flows, from recordings of
// one worker.
//
// In a busy period the bytes that have ended grow with time. Where a line explains that growth
// (streams that are sent whole), its slope is the bandwidth, whatever was lost at the start;
// elsewhere (streams that alternate) only the whole period tells, all bytes over all time, start
// included. Over the periods: a robust mean (measured_line.h), so that periods in which something
// was lost or retransmitted count as outliers, with Student's t. What a recorded transfer took by
// itself is not used: it holds the wait behind others.

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
