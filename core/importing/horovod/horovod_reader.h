// Reader of Horovod's timeline: the all-reduces of each tensor, and the steps that they are of.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/importing/common/byte_source.h"
#include "core/model/profile.h"

namespace stepcast {

// One all-reduce of a tensor.
struct TensorUse {
  int64_t ready_ns = 0;
  int64_t end_ns = 0;
};

struct HorovodTensor {
  std::string name;
  std::string type;   // empty: not recorded
  std::string shape;  // the same
  std::vector<TensorUse> uses;
};

struct HorovodRecording {
  std::vector<HorovodTensor> tensors;  // with a use at least, in the order of their processes
  bool is_open = false;  // the list ended without its bracket, as a job that was stopped leaves it
};

// Failure: as of ImportHorovodTimeline.
absl::StatusOr<HorovodRecording> ReadHorovodTimeline(ByteSource& source,
                                                     const ProfileLimits& limits, StopCheck stop);

// Steps in a recording that says of no step where it begins: every step uses every tensor once.

// One use of a tensor.
struct TensorTurn {
  size_t tensor = 0;
  int64_t ready_ns = 0;
  int64_t end_ns = 0;
};

// A step: turns next to each other, none twice of a tensor.
struct StepRound {
  size_t first = 0;  // of the turns
  size_t count = 0;
  bool is_whole = false;  // it has each tensor
};

// The rounds of turns that are in the order of ready_ns, by which as many as can be are whole: of
// several such, those that begin with the first turn, then those in which least time passes
// between the first turn of a round and the last. REQUIRES: tensors below `tensors`, which is above
// 0.
std::vector<StepRound> RoundsOf(const std::vector<TensorTurn>& turns, size_t tensors);

}  // namespace stepcast
