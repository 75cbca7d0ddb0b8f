// The process groups of a trace of PyTorch's profiler: which ones are inside a replica, and how
// many devices it has.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "core/importing/pytorch/pytorch_reader.h"

namespace stepcast {

// "tensor", "pipeline", "context" or "expert": the one dimension of a replica that a group is;
// empty: none, or several.
std::string DimensionOf(const TraceGroup& group);

// By its description, as Megatron, DeepSpeed and torchtitan write it, a group inside a replica.
bool IsInsideReplica(const TraceGroup& group);

// The devices of a replica, told by the sizes of the groups that the trace has beside the one of
// `gradients`; 1 where it has none.
int64_t DevicesOfReplica(const PyTorchTrace& trace, int32_t gradients);

}  // namespace stepcast
