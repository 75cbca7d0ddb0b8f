// One measurement under load: calls that are made for some time, and how they ended.
//
// A closed loop keeps a number of calls under way: as one ends the next begins. When the server is
// slow it asks less, so what it measures is how fast the server can be, and it does not see what
// callers who come by themselves would have waited. An open loop makes calls at the instants of a
// schedule, whether or not earlier ones have ended, and counts each latency from its instant on the
// schedule, also where it could only leave later: so no pause of the server, or of this process,
// hides the waiting it causes (coordinated omission).
//
// The window that counts begins after the warm-up. Of a closed loop the calls that end in it count,
// of an open one those that are scheduled in it, whenever they end.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <variant>

#include "absl/status/status.h"
#include "client/src/load/latency_histogram.h"
#include "client/src/load/load_clock.h"
#include "client/src/load/load_transport.h"

namespace stepcast::client {

// So many calls in a row that find no server end a measurement.
inline constexpr int kUnavailableMax = 1000;

struct ClosedLoop {
  uint32_t concurrency = 1;  // at most the transport's calls_max()
};

struct OpenLoop {
  double rate = 1;  // calls a second, so many that the time between two is a number of nanoseconds
};

struct LoadPlan {
  std::variant<ClosedLoop, OpenLoop> loop;
  std::chrono::nanoseconds warmup{0};
  std::chrono::nanoseconds duration = std::chrono::seconds(10);
  // A call that takes longer, from its instant on the schedule on, is not good, however it ends.
  std::chrono::nanoseconds deadline = std::chrono::seconds(10);
  uint64_t first_question = 0;
};

// A count for each canonical code, by its number.
using CodeCounts = std::array<int64_t, 17>;
int64_t Sum(const CodeCounts& counts);

struct LoadResult {
  std::chrono::nanoseconds window{0};
  CodeCounts codes{};      // of the calls that count
  CodeCounts all_codes{};  // of all, those of the warm-up and after the window too
  int64_t good = 0;        // OK, within the deadline
  int64_t unsent =
      0;  // that count and were never made, because as many were under way as the transport carries
  LatencyHistogram latency;  // of those that count and ended with OK
  LatencyHistogram refusal;  // of those that count and ended otherwise
  LatencyHistogram
      lateness;  // by how much the calls of an open loop that count left after their instant
  uint64_t next_question = 0;  // the first that was not asked
  bool server_gone = false;    // ended early, after kUnavailableMax

  double Goodput() const;  // good ones a second
};

// Blocks for warm-up and duration, and until the last call has ended.
LoadResult RunLoad(const LoadPlan& plan, LoadClock& clock, LoadTransport& transport);

}  // namespace stepcast::client
