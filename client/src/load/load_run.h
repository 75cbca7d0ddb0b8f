// A load on a server and what it measures: its clock, what carries its calls, a histogram of
// latencies, and one measurement.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "absl/status/status.h"

namespace stepcast::client {

// The time that a load is measured in.
//
// An instant is the time since some beginning, which is the clock's own. Threads: safe.
class LoadClock {
 public:
  virtual ~LoadClock() = default;

  virtual std::chrono::nanoseconds Now() = 0;
  // Returns at `instant` or, because threads are late, after it; at once if it has passed.
  virtual void SleepUntil(std::chrono::nanoseconds instant) = 0;
};

// The system's steady one.
class SteadyLoadClock : public LoadClock {
 public:
  std::chrono::nanoseconds Now() override;
  void SleepUntil(std::chrono::nanoseconds instant) override;
};

// A carrier of the calls of a load to a server, many at a time.
//
// Calls are named by small numbers, which are used again. Questions are named by numbers, too: what
// they ask, the transport knows.
class LoadTransport {
 public:
  // Hears how calls end, on any thread, one at a time.
  class Listener {
   public:
    virtual ~Listener() = default;
    // May start calls, this one too.
    virtual void OnEnded(uint32_t call, absl::StatusCode code) = 0;
  };

  virtual ~LoadTransport() = default;

  // The most calls that may be under way at once.
  virtual uint32_t calls_max() const = 0;
  // Begins a call and does not wait. The listener hears of its end once, after a deadline of the
  // transport's at the latest. REQUIRES: call < calls_max(), and it is not under way; of all calls
  // under way the listener is the same, and outlives them.
  virtual void Start(uint32_t call, uint64_t question, Listener& listener) = 0;
  // Returns when no call is under way.
  virtual void AwaitAll() = 0;
};

// A histogram of latencies, in buckets whose width grows with the values they hold.
//
// Precision: a percentile is never below the exact one, and above it by less than a 256th. Count,
// mean and the greatest are exact. Range: from 0 to an hour; what is longer counts as an hour in
// percentiles, below 0 as 0. Cost: Record O(1) without allocation, Percentile O(buckets). 70 KiB.
// Threads: none.
class LatencyHistogram {
 public:
  static constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(1);

  LatencyHistogram();

  void Record(std::chrono::nanoseconds latency);

  int64_t count() const { return count_; }
  std::chrono::nanoseconds max() const { return max_; }
  // 0 where nothing was recorded.
  std::chrono::nanoseconds Mean() const;
  // The least latency that at least a share `part` of the calls did not exceed; 0 where nothing was
  // recorded. REQUIRES: part is in (0, 1].
  std::chrono::nanoseconds Percentile(double part) const;

 private:
  std::vector<int64_t> buckets_;
  int64_t count_ = 0;
  double sum_ns_ = 0;
  std::chrono::nanoseconds max_{0};
};

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
