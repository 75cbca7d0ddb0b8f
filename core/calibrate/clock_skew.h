// The skew between two clocks of a recording, and the correction that puts its times into an order
// that is possible.
//
// Times of PARAMETER_SERVER operations are the server's, all others the worker's:
// kServerOperations; or those of what the server does alone, the start of a download (ready at the
// sender) and the end of an upload (at hand at the receiver), too: kTransferEnds. Nothing starts
// before what it waits for has ended, and nothing ends before it starts; between the clocks each
// such order bounds how far the server's may be ahead. Where 0 is within all bounds there is no
// evidence of a skew, and none is taken. What is impossible beyond the skew is clamped: a start is
// moved to the last end it waits for, an end to its start. Threads: immutable after Measure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/model/profile.h"

namespace stepcast {

enum class ClockSplit : uint8_t { kServerOperations, kTransferEnds };

// Less than this is rounding: many recorders count microseconds.
inline constexpr int64_t kClockToleranceNs = 1000;

class ClockSkew {
 public:
  // The split and the offset that leave the fewest impossible orders. Steps that are contradictory
  // themselves do not hide what the others say: the bounds used are those that nine in ten steps
  // agree with. Cost: linear in dependencies and steps, three times. Failure: what `stop` returns.
  // REQUIRES: steps are as long as the operations; waiting_for holds indices, without a cycle. Ends
  // may lie before starts.
  static absl::StatusOr<ClockSkew> Measure(const ProfileDraft& recording, StopCheck stop);

  // In the worker's time, every order possible, nothing before 0. The latter moves the whole step.
  RecordedStep Corrected(const ProfileDraft& recording, const RecordedStep& step) const;

  int64_t orders() const { return orders_; }                        // looked at, all steps together
  int64_t impossible_orders() const { return impossible_orders_; }  // as recorded
  int64_t clamped_orders() const { return clamped_orders_; }  // that the offset leaves impossible
  int64_t worst_ns() const {
    return worst_ns_;
  }  // the most by which a recorded order is impossible
  int64_t worst_clamped_ns() const { return worst_clamped_ns_; }
  // The lead of the server's clock that is taken for true; 0: no evidence.
  int64_t server_ahead_ns() const { return server_ahead_ns_; }
  ClockSplit split() const { return split_; }

 private:
  int64_t orders_ = 0;
  int64_t impossible_orders_ = 0;
  int64_t clamped_orders_ = 0;
  int64_t worst_ns_ = 0;
  int64_t worst_clamped_ns_ = 0;
  int64_t server_ahead_ns_ = 0;
  ClockSplit split_ = ClockSplit::kServerOperations;
  std::vector<int32_t> sorted_;  // operations, each after what it waits for
};

}  // namespace stepcast
