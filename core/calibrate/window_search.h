// The flow control window that best explains when a recording's transfers ended.
//
// Source: ICPE 2020, 3.2.2, which reads the window from captured packets; here it is found from the
// ends alone. How far the model is from a recording jumps where the window passes a tensor's size
// and changes smoothly between, so candidates are the sizes, powers of 1.25 between them, and finer
// ones around the best. Beyond the largest tensor all windows are the same, and none: there the
// recording cannot tell. Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/calibrate/link_replay.h"
#include "core/calibrate/recorded_phase.h"

namespace stepcast {

// The load of a stream's services after the first one.
enum class QuantumRule : uint8_t {
  kRest,           // all that is left: gRPC before 1.51
  kWindowAndMore,  // the window and 1 MiB: gRPC from 1.51 on
  kSame,           // as much as the first: equal quanta
};

inline constexpr double kQuantumBeyondWindowBytes = 1'048'576;

// The setting with this window, 0: none.
LinkSetting WithWindow(LinkSetting setting, double window_bytes, QuantumRule rule);

struct WindowEstimate {
  // True if some window explains the ends clearly better than streams that are sent whole.
  bool is_identified = false;
  double window_bytes = 0;  // 0 where it is not identified
  // Windows that explain them about as well. Where it is not identified: from the least one above
  // which all do.
  double lower_bytes = 0;
  double upper_bytes = 0;    // the largest transfer: no end
  double largest_bytes = 0;  // of all transfers
  double distance = 0;       // EndTimeErrors::distance, over the phases looked at
};

// Looks at all phases up to 30,000 transfers, else at as many of them, evenly chosen, one at least.
// Cost: some 150 replays of those. Failure: what `stop` returns. REQUIRES: there are transfers;
// bytes_per_second > 0.
absl::StatusOr<WindowEstimate> FindWindow(std::span<const RecordedPhase> phases,
                                          const LinkSetting& setting, QuantumRule rule,
                                          StopCheck stop);

// True if a distance is as good as the best one, given what chance and a model's small faults
// change.
bool IsAboutAsNear(double distance, double best);

}  // namespace stepcast
