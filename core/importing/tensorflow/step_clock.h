// The clocks of a recording's machines, brought together: each of them wrote its own time beside
// what it did.
//
// A server's clock may not show that it sent a tensor after the worker had it, nor that it had one
// before the worker's operation that made it ended. Where it does, the clock is moved by the least
// that takes this away; where both cannot be, so that nothing is received before it was made. What
// then still starts before the step, or before what it waits for on another machine, is moved to
// there. Cost: linear in operations and dependencies.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/profile.h"

namespace stepcast {

// Counts of the moves, in all steps.
struct ClockRepairs {
  int64_t moved_clocks = 0;   // of a server in a step
  int64_t most_moved_ns = 0;  // by how much, of either sign
  int64_t clamped = 0;        // starts moved after their server's clock had been
  int64_t clamped_ns = 0;     // together
  int64_t most_clamped_ns = 0;
};

// A repaired step as it was before.
struct RepairedStep {
  int64_t begin_ns = 0;            // its origin, on the worker's clock
  std::vector<int64_t> shifts_ns;  // by server: added to its clock's times
};

// The readings that a repair keeps. kNone: all is put right, here, by the step alone. kEnds: ends
// are, as many as `begin_ns` and `shifts_ns` say, for what knows more of the clocks than one step;
// a server's clock is moved forwards, too, where it has the server start before the worker.
enum class KeptReadings : uint8_t { kNone, kEnds };

class StepClock {
 public:
  // Of the operations' fields all but name and parameter count. Borrows them.
  StepClock(const std::vector<Operation>& operations, int32_t servers,
            double bandwidth_bytes_per_second, KeptReadings kept = KeptReadings::kNone);

  // Makes times from the step's start on of times on the clocks of their machines: downloads and
  // the worker's operations on the worker's, all others on their server's.
  RepairedStep Repair(RecordedStep& step);

  const ClockRepairs& repairs() const { return repairs_; }

 private:
  struct Bounds {
    int64_t least;
    int64_t most;
    int64_t first_start;  // of anything on the server's clock
  };

  void FindBounds(const RecordedStep& step);
  int64_t ShiftOf(size_t server) const;
  RepairedStep MoveServers(RecordedStep& step);
  void Clamp(RecordedStep& step, size_t operation, int64_t earliest);

  const std::vector<Operation>& operations_;
  const KeptReadings kept_;
  std::vector<int64_t> upload_ns_;  // by server: what all of its uploads take
  std::vector<Bounds> bounds_;      // by server
  int64_t worker_start_ = 0;        // of the step that is being repaired, on the worker's clock
  int64_t worker_end_ = 0;
  ClockRepairs repairs_;
};

}  // namespace stepcast
