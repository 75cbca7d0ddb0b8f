// Import of the traces that PyTorch's profiler wrote on several ranks of one job.
//
// Each rank's trace is read as pytorch_trace.h reads one; then steps are matched by their number,
// and the collectives of each step by group, order and size. Programs that are alike are one: ranks
// may differ in pieces of computation that took no time on some of them, and in nothing else.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/importing/byte_source.h"
#include "core/importing/pytorch_trace.h"
#include "core/model/multi_rank_recording.h"
#include "core/model/profile_limits.h"

namespace stepcast {

struct RankTrace {
  ByteSource* recording = nullptr;
  std::string name;  // of its file: "rank3" in it says the rank where the trace does not
};

// By rank: that of distributedInfo, else of the name. Traces are read one after the other; memory:
// the events that an import needs of one of them, and of each what its profile takes. Failure: as
// ImportPyTorchTrace, the trace's place in the path (`recordings[2]`); there, too, the first
// difference between two ranks: a rank that is there twice, or of another world, no step in common,
// another number, kind, size or group of collectives, or another operation.
absl::StatusOr<MultiRankRecording> ImportPyTorchRanks(const std::vector<RankTrace>& traces,
                                                      const PyTorchTraceOptions& options,
                                                      const ProfileLimits& limits, StopCheck stop);

}  // namespace stepcast
