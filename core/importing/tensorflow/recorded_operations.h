// The operations of a profile, and their times in each step, from recorded nodes, once the clocks
// of the machines that recorded them are brought together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "core/importing/tensorflow/recorded_rows.h"
#include "core/importing/tensorflow/tensorflow_graph.h"
#include "core/model/profile.h"

namespace stepcast {

// The clocks of a recording's machines, brought together: each of them wrote its own time beside
// what it did.
//
// A server's clock may not show that it sent a tensor after the worker had it, nor that it had one
// before the worker's operation that made it ended. Where it does, the clock is moved by the least
// that takes this away; where both cannot be, so that nothing is received before it was made. What
// then still starts before the step, or before what it waits for on another machine, is moved to
// there. Cost: linear in operations and dependencies.

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
  // All fields of the operations count but name and parameter. Borrows them.
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

// The operations of a profile, and their times in each step, from recorded nodes.
//
// Downloads are called `recv/` and uploads `send/`, followed by the node that sent the tensor;
// computations are called as their nodes. Where two would be called the same both get the tensor's
// full name, or their devices, too. The operations stand in the order in which they started in the
// first step.

// Names each operation by the node it was recorded as, so that no two are called the same: see
// above. The names do not depend on the order of the nodes.
void NameOperations(const RecordedRows& rows, const std::vector<int32_t>& recorded,
                    std::vector<Operation>& operations);

struct RecordedOperations {
  std::vector<Operation> operations;
  std::vector<RecordedStep> steps;
  std::vector<RepairedStep> clocks_of_steps;  // parallel to the steps
  std::string worker_job;                     // of the worker's device; empty: it has none
  int32_t worker_task = 0;                    // likewise
  int32_t parameter_servers = 0;
  int64_t empty_transfers = 0;    // of no bytes, counted as one
  int64_t without_parameter = 0;  // transfers of which no variable is known
  ClockRepairs clocks;
};

// Takes the chosen nodes and steps, whose recorded times it gives back as it goes, so that they are
// not there twice. Fails where the operations are of several workers or of too many servers, or a
// tensor has no size.
absl::StatusOr<RecordedOperations> MakeOperations(RecordedRows& rows, const TensorflowGraph& graph,
                                                  const StepChoice& choice,
                                                  const Platform& platform,
                                                  const ProfileLimits& limits, KeptReadings kept);

}  // namespace stepcast
