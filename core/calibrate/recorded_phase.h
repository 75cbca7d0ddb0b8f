// The transfers of one direction in one recorded step, and when their link was busy.
//
// A recorded start is a request and a recorded end is when the data was at hand (ICPE 2020, section
// 2), so an interval holds the wait behind others: only what all of them together did over time
// tells of the link. Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/profile.h"

namespace stepcast {

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

}  // namespace stepcast
