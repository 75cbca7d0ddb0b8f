// The alignment of the clocks of a job's nodes, from what they recorded of their exchanges.
//
// Source: dPRO (Hu et al., MLSys 2022), section 4.2. A node's clock reads t when the common time is
// t + theta(t), where theta is a line: an offset and a drift. Of a receive its recording knows when
// it was launched, not when its data began to flow; so its duration counts from the later of its
// launch and the send's start. Sought are lines at which every exchange is possible (nothing is
// received before it was sent, no collective ends on any node before the last one has entered it)
// and at which the durations of the same receive, step by step, differ least. Where that leaves
// offsets open they are those at which messages take as long in both directions, as NTP assumes
// (RFC 5905, section 8), and collectives that end together do so.
//
// Departures from the paper. It does not use that collectives end together; without that a worker
// that always comes last is taken for one whose clock is ahead by half of what the others wait for
// it. The maximum is not relaxed by a variable above both of its terms, which is not exact under a
// variance; instead the branch that is active is fixed, the program solved, and that repeated while
// it gets better. Clocks drift; the paper has offsets alone.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"

namespace stepcast {

// A message from one node to another, each end in nanoseconds of the clock of the node it is on.
struct RecordedMessage {
  int32_t family = 0;  // of RecordedExchanges: the same message of another step
  int32_t step = 0;
  int32_t sender = 0;
  int32_t receiver = 0;
  int64_t send_start_ns = 0;
  int64_t send_end_ns = 0;  // not after the receive's end; where it is not known, the start
  int64_t receive_start_ns = 0;
  int64_t receive_end_ns = 0;
};

// A collective of several nodes: it ends on none before the last one has started it.
struct RecordedCollective {
  struct Member {
    int32_t node = 0;
    int64_t start_ns = 0;
    int64_t end_ns = 0;
  };

  int32_t family = 0;
  int32_t step = 0;
  std::vector<Member> members;  // at least two, no node twice
  // It ends on all of them at about the same time, as an all-reduce does: nobody has the sum before
  // everybody's share of it is there.
  bool ends_together = false;
};

struct RecordedExchanges {
  std::vector<std::string> nodes;     // names; the first one's clock is the common time
  std::vector<int32_t> machines;      // by node, or empty: nodes of one machine share a clock, or
                                      // nearly
  std::vector<std::string> families;  // names, for errors
  std::vector<RecordedMessage> messages;
  std::vector<RecordedCollective> collectives;
};

struct AlignmentLimits {
  int32_t max_nodes = 128;
  size_t max_readings = 20'000'000;          // 4 a message, 2 a collective's member
  int64_t max_length_ns = int64_t{1} << 45;  // of a node's readings: 9.7 hours
};

struct AlignmentOptions {
  // The most that two clocks may drift apart, seconds a second, from 0 to 0.01. 0: offsets alone.
  // Quartz is within 1e-4 of its rate.
  double max_drift = 2e-4;
  // The uncertainty of a reading: an order that is violated by less is none. At least 0.
  int64_t tolerance_ns = 1000;
  // The weight of the squared distance of two clocks of one machine beside a variance.
  double machine_weight = 1;
  // Times that the active branches are looked at again, at least 0; 0: no durations are compared.
  int32_t max_rounds = 8;
};

// The line from a node's clock to the common time.
struct NodeClock {
  int64_t reference_ns = 0;  // of the node's clock: the middle of its readings
  int64_t offset_ns = 0;     // to add there
  double drift = 0;          // to add for each nanosecond from there
  // False where the drift was not looked for, or is as large as was looked for: the exchanges would
  // have it be more, so that it is a limit and no estimate.
  bool drift_is_known = true;
  bool drift_is_bounded = false;  // it was looked for, so least_drift and most_drift are told
  // All offsets that the exchanges allow, at any drift that they allow. Where nothing bounds one
  // side it is kUnboundedOffset, with its sign.
  int64_t least_offset_ns = 0;
  int64_t most_offset_ns = 0;
  double least_drift = 0;  // likewise; at most max_drift
  double most_drift = 0;

  int64_t ToCommon(int64_t reading_ns) const;
};

inline constexpr int64_t kUnboundedOffset = INT64_MAX;

struct ClockAlignment {
  std::vector<NodeClock> clocks;  // by node; the first one's is all 0 but for its reference
  // Root of the mean variance over all receives, with the clocks as they were recorded, in the
  // middle of what is possible, and aligned.
  double recorded_spread_ns = 0;
  double centred_spread_ns = 0;
  double spread_ns = 0;
  int32_t rounds = 0;  // that made it better
  int64_t bounds = 0;  // orders that no other one implies
};

// Nothing that is possible in the aligned clocks is violated by more than the tolerance and 2 ns of
// rounding. Cost: O(readings x nodes) for collectives, O(readings log readings) for messages; then
// some small quadratic programs. Memory: 8 bytes a collective and node, and what is given.
//
// Failure: INVALID_ARGUMENT, reason EXCHANGES_INVALID, with each fault's path (`messages[3].step`);
// reason CLOCKS_UNCONNECTED, where nodes share no exchange; reason CLOCKS_CONTRADICT, where no
// lines make all exchanges possible: its faults are those that contradict each other, metadata
// `excess_ns` says by how much all together, `slack_ns` by how much each would have to yield. What
// `stop` returns.
absl::StatusOr<ClockAlignment> AlignClocks(const RecordedExchanges& exchanges,
                                           const AlignmentOptions& options, StopCheck stop,
                                           const AlignmentLimits& limits = {});

}  // namespace stepcast
