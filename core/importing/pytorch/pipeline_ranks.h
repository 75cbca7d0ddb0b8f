// Import of the traces that PyTorch's profiler wrote on the ranks of one replica of a pipeline.
//
// A rank's steps are M forward passes (the annotation DistributedDataParallel.forward) and as many
// backward passes, each of which ends with the last of as many gradients; sends and receives are
// told apart by the pass before them and by their sizes. Each stage has the times of its own rank,
// without what it waited for; what a rank sends, its neighbour must receive.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/importing/common/recording_import.h"
#include "core/importing/pytorch/pytorch_reader.h"
#include "core/importing/pytorch/pytorch_trace.h"
#include "core/model/profile.h"

namespace stepcast {

// The part of a rank's trace that is kept: a stage.
struct PipelineRank {
  struct MicroBatch {
    int64_t forward_ns = 0;
    std::vector<int64_t> backward_ns;  // until each of its gradients
  };
  struct Step {
    int64_t number = 0;
    std::vector<MicroBatch> micro_batches;
    int64_t optimizer_ns = 0;
    int64_t length_ns = 0;
  };

  std::string path;  // of its recording, in faults: "recordings[2]"
  int64_t rank = -1;
  int64_t world_size = 0;               // ranks of its job; 0: not recorded
  int64_t stages = 0;                   // ranks of its pipeline's process group; 0: likewise
  int64_t activation_bytes = 0;         // that it hands on; 0: it is the last stage
  int64_t input_bytes = 0;              // whose gradient it hands back; 0: it is the first
  std::map<int64_t, int64_t> received;  // tensors a step, by their bytes
  std::vector<int64_t> gradient_bytes;  // in their order; 0: of its input
  std::vector<Step> steps;              // with equally many micro-batches; never empty once read

  int64_t micro_batches() const { return static_cast<int64_t>(steps.front().micro_batches.size()); }
};

// Without the first two steps, if there are more. Failure: INVALID_ARGUMENT, reason IMPORT_INVALID,
// at `recording`: kernels of a GPU, no forward pass, or passes, gradients, sends or receives that
// make no stage of one chunk.
absl::StatusOr<PipelineRank> ReadPipelineRank(const PyTorchTrace& trace);

// A profile of one micro-batch, whose stages are the ranks in their order: forward/R, backward/R/I,
// gradient/R/I and optimizer/R; a recorded step is one micro-batch of one step that all ranks have.
// With step_seconds all times are scaled as the median step is. Failure: likewise, at the path of
// the rank that contradicts the one before it. REQUIRES: sound options, not empty.
absl::StatusOr<ImportedProfile> ProfileOfPipeline(std::vector<PipelineRank> ranks,
                                                  const PyTorchTraceOptions& options,
                                                  const ProfileLimits& limits);

// The check that traces of ranks are those of one replica of a pipeline, all of them
// (pipeline_replica.cc).

// "4 of 1310720 bytes".
std::string TensorsOf(const std::map<int64_t, int64_t>& tensors);

// The first rank sends on alone, the last back alone, all others both ways, and each what its
// neighbours receive. Ranks of replicas lie in a grid, as of a device mesh: those of one are
// equally far apart, and all replicas together make up the job. What numbers cannot tell is added
// to `doubts`. Failure: INVALID_ARGUMENT, reason IMPORT_INVALID, at the path of the rank that
// contradicts. REQUIRES: ascending ranks, not empty.
absl::Status CheckReplica(const std::vector<PipelineRank>& ranks, std::vector<std::string>& doubts);

}  // namespace stepcast
