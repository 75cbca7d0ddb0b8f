// Import of traces of PyTorch's profiler: of one worker, with or without DistributedDataParallel,
// or of the ranks of one job (pytorch_ranks.cc). README.md says what becomes of what, and what to
// record.
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/importing/common/byte_source.h"
#include "core/importing/common/rank_matching.h"
#include "core/importing/common/recording_import.h"
#include "core/importing/pytorch/pytorch_reader.h"
#include "core/model/multi_rank_recording.h"
#include "core/model/profile.h"

namespace stepcast {

struct PyTorchTraceOptions {
  RecordingOptions recording;
  // Mean seconds of a step without the profiler, above 0: all times are scaled to it. Empty: as
  // recorded.
  std::optional<double> step_seconds;
  // The process group, by name or description, in which workers reduce gradients; all others are
  // inside a worker. Empty: found by sizes and descriptions.
  std::string data_parallel_group;
};

// One COLLECTIVE a gradient, in the order in which they became ready (one a bucket where only the
// buckets' sizes were recorded), and the computation between as WORKER operations. A single worker
// takes as long for each recorded step as the recording. Memory: that of the events that are
// needed. Failure: INVALID_ARGUMENT, reason IMPORT_INVALID, at `recording` with what to record
// instead, or at a field of the options; what the source or `stop` fails with.
absl::StatusOr<ImportedProfile> ImportPyTorchTrace(ByteSource& recording,
                                                   const PyTorchTraceOptions& options,
                                                   const ProfileLimits& limits, StopCheck stop);

// The same of a trace that has been read, one rank's of several that are imported together, whose
// forward pass stays whole. Failure: as above, but of the options' own.
absl::StatusOr<ImportedProfile> ProfileOfPyTorchRank(const PyTorchTrace& trace,
                                                     const PyTorchTraceOptions& options,
                                                     const ProfileLimits& limits);
// OK, or the options' faults, each at its field.
absl::Status CheckPyTorchTraceOptions(const PyTorchTraceOptions& options,
                                      const ProfileLimits& limits);

// Traces of several ranks. Each rank's trace is read as one; rank_matching.h makes one recording of
// them. Ranks that send and receive are a replica of a pipeline (pipeline_ranks.h).

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
