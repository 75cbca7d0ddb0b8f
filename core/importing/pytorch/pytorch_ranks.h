// Import of the traces that PyTorch's profiler wrote on several ranks of one job.
//
// Each rank's trace is read as pytorch_trace.h reads one; rank_matching.h makes one recording of
// them. Ranks that send and receive are a replica of a pipeline (pipeline_ranks.h).
#pragma once

#include <variant>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/importing/common/rank_matching.h"
#include "core/importing/common/recording_import.h"
#include "core/importing/pytorch/pytorch_trace.h"
#include "core/model/multi_rank_recording.h"
#include "core/model/profile.h"

namespace stepcast {

// By rank: that of distributedInfo, else of the name. A profile is of a pipeline, which the first
// trace says. Memory: the events that an import needs of one trace, and of each what its profile
// takes. Failure: as ImportPyTorchTrace and ImportRanks, or as ProfileOfPipeline.
using PyTorchJob = std::variant<MultiRankRecording, ImportedProfile>;
absl::StatusOr<PyTorchJob> ImportPyTorchJob(const std::vector<RankTrace>& traces,
                                            const PyTorchTraceOptions& options,
                                            const ProfileLimits& limits, StopCheck stop);

// The same of workers that reduce gradients; those of a pipeline fail at `recordings`.
absl::StatusOr<MultiRankRecording> ImportPyTorchRanks(const std::vector<RankTrace>& traces,
                                                      const PyTorchTraceOptions& options,
                                                      const ProfileLimits& limits, StopCheck stop);

}  // namespace stepcast
