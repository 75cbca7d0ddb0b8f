// Reader of Horovod's timeline: the all-reduces of each tensor.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/importing/common/byte_source.h"
#include "core/model/profile_limits.h"

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

}  // namespace stepcast
